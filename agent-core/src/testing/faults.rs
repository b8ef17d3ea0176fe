//! Seeded fault injection.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use super::SeededRng;

/// A fault of a model or a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// The call takes half a minute.
    Slow,
    /// The call hangs for an hour, and then the connection fails.
    Stall,
    /// Model: the stream ends in the middle.
    Cut,
    /// Model: rate limited (HTTP 429), with a requested delay.
    RateLimited,
    /// Model: the provider fails (HTTP 5xx).
    ServerError,
    /// Model: the response violates the protocol, or the arguments of a call are invalid JSON.
    Garbage,
    /// Model: all calls of a message have the same id.
    DuplicateIds,
    /// Tool: fails before any effect.
    Fails,
    /// Tool: has its effect, and then reports a failure.
    FailsAfter,
    /// Tool: has its effect, and returns half a minute later.
    SlowAfter,
}

/// Source of faults and of scheduling decisions, driven by a seed. Clones share the same numbers.
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
    /// Creates a source with these numbers: faults in 15 of 100 calls, and at most 12.
    pub fn new(rng: SeededRng) -> Self {
        Self(Arc::new(Mutex::new(Inner { rng, percent: 15, left: 12, drawn: 0 })))
    }

    /// Sets the percentage of calls with a fault.
    #[must_use]
    pub fn percent(self, percent: u64) -> Self {
        self.lock().percent = percent;
        self
    }

    /// Sets the maximum number of faults. A run that is retried often enough succeeds after that.
    #[must_use]
    pub fn at_most(self, faults: u64) -> Self {
        self.lock().left = faults;
        self
    }

    /// Draws the fault of a call, if it has one.
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

    /// Number of faults drawn.
    pub fn drawn(&self) -> u64 {
        self.lock().drawn
    }

    /// Yields to other tasks for a random time. If all tasks call it everywhere, the seed
    /// determines the order of concurrent events. Takes up to 20 ms of (paused) time.
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

/// Sleeps for the duration of [`Fault::Slow`].
pub(super) async fn slow() {
    tokio::time::sleep(Duration::from_secs(30)).await;
}

/// Sleeps for the duration of [`Fault::Stall`].
pub(super) async fn stall() {
    tokio::time::sleep(Duration::from_secs(3600)).await;
}
