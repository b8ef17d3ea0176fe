//! What goes wrong, decided by a seed.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use super::SeededRng;

/// Something that goes wrong with a model or a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// It takes half a minute.
    Slow,
    /// Nothing comes for an hour; then the connection is given up.
    Stall,
    /// A model: the stream ends in the middle.
    Cut,
    /// A model: too many calls (a 429), with a delay.
    RateLimited,
    /// A model: the provider fails (a 5xx).
    ServerError,
    /// A model: the answer is no protocol, or the arguments of a call are no JSON.
    Garbage,
    /// A model: all calls of a message have one id.
    DuplicateIds,
    /// A tool: it fails before it did anything.
    Fails,
    /// A tool: it does its work, and then says that it failed.
    FailsAfter,
    /// A tool: it does its work, and says so only after half a minute.
    SlowAfter,
}

/// Draws faults, and the order in which things happen. Clones draw from the same numbers.
///
/// ```
/// use agent_core::testing::{Fault, Faults, SeededRng};
///
/// let faults = Faults::new(SeededRng::new(3)).percent(100).at_most(1);
/// assert!(faults.draw(&[Fault::Cut, Fault::Slow]).is_some());
/// assert!(faults.draw(&[Fault::Cut, Fault::Slow]).is_none(), "from now on all is well");
/// ```
#[derive(Clone, Debug)]
pub struct Faults(Arc<Mutex<Inner>>);

#[derive(Debug)]
struct Inner {
    rng: SeededRng,
    percent: u64,
    left: u64,
    drawn: u64,
}

impl Faults {
    /// Faults from these numbers: in 15 of 100 calls, and at most 12.
    pub fn new(rng: SeededRng) -> Self {
        Self(Arc::new(Mutex::new(Inner { rng, percent: 15, left: 12, drawn: 0 })))
    }

    /// Sets in how many of 100 calls something goes wrong.
    #[must_use]
    pub fn percent(self, percent: u64) -> Self {
        self.lock().percent = percent;
        self
    }

    /// Sets how many faults there are altogether. A run that is tried again and again comes to its end then.
    #[must_use]
    pub fn at_most(self, faults: u64) -> Self {
        self.lock().left = faults;
        self
    }

    /// What goes wrong with this call, if anything.
    pub fn draw(&self, among: &[Fault]) -> Option<Fault> {
        let mut inner = self.lock();
        let percent = inner.percent;
        if inner.left == 0 || among.is_empty() || !inner.rng.chance(percent) {
            return None;
        }
        inner.left -= 1;
        inner.drawn += 1;
        let which = inner.rng.below(among.len() as u64);
        usize::try_from(which).ok().and_then(|at| among.get(at)).copied()
    }

    /// True in half of the cases.
    pub fn coin(&self) -> bool {
        self.lock().rng.chance(50)
    }

    /// How many faults there were.
    pub fn drawn(&self) -> u64 {
        self.lock().drawn
    }

    /// Lets others go first, or not: whoever awaits it everywhere has the order of what happens at once decided by the seed.
    /// Takes up to 20 ms of (paused) time.
    pub async fn shuffle(&self) {
        let draw = self.lock().rng.below(32);
        match draw {
            0..8 => {}
            8..12 => tokio::time::sleep(Duration::from_millis(draw + 8)).await,
            12..20 => tokio::time::sleep(Duration::from_millis(draw - 11)).await,
            _ => {
                for _ in 0..draw - 19 {
                    tokio::task::yield_now().await;
                }
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// As long as [`Fault::Slow`] takes.
pub(super) async fn slow() {
    tokio::time::sleep(Duration::from_secs(30)).await;
}

/// As long as [`Fault::Stall`] takes.
pub(super) async fn stall() {
    tokio::time::sleep(Duration::from_secs(3600)).await;
}
