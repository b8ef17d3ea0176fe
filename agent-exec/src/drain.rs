//! Graceful shutdown of an application's runs.

use std::{
    collections::HashMap,
    fmt, io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use agent_core::{Error, ErrorKind, Result};
use tokio::{sync::Notify, time::timeout};

use crate::RunHandle;

/// Time that cancelled runs have to return their checkpoints.
const GRACE: Duration = Duration::from_secs(1);

/// Stops the runs of all agents that were [built with it](crate::AgentBuilder::drain): no new run
/// starts, and the running ones reach a safe point, release their sessions, and can be resumed by
/// another process.
///
/// It does not listen to signals: the application decides when to shut down. Clones share their
/// state.
///
/// ```
/// use std::time::Duration;
///
/// use agent_core::testing::{ScriptedModel, Turn};
/// use agent_exec::{Agent, Drain};
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let drain = Drain::new();
/// let slow = Turn::text("Hello!").delay(Duration::from_millis(20));
/// let agent = Agent::builder("a", ScriptedModel::new([slow])).drain(&drain).build()?;
/// let run = tokio::spawn(agent.start(agent_core::RunRequest::user("Hi")));
/// tokio::task::yield_now().await;
/// // In an application first: agent_exec::shutdown_signal().await?;
/// let drained = drain.drain(Duration::from_secs(10)).await;
/// assert_eq!((drained.ended, drained.left), (1, 0));
/// assert_eq!(run.await.expect("no panic")?.as_str(), "finished", "it was at its last step");
/// assert!(agent.run("Hi").await.is_err(), "nothing begins any more");
/// # Ok::<(), agent_core::Error>(()) }).unwrap();
/// ```
#[derive(Clone, Default)]
pub struct Drain(Arc<Inner>);

#[derive(Default)]
struct Inner {
    state: Mutex<State>,
    fewer: Notify,
}

#[derive(Default)]
struct State {
    closed: bool,
    last: u64,
    runs: HashMap<u64, RunHandle>,
}

/// Counts of the runs that were running when the drain began, by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Drained {
    /// Runs that paused or ended in time.
    pub ended: usize,
    /// Runs that were cancelled when the time was up, and returned their checkpoints.
    pub cancelled: usize,
    /// Runs that did not stop even after the cancellation. Their sessions become free when their
    /// leases expire; acknowledged entries are kept, as if the process had been killed.
    pub left: usize,
}

/// Guard of a run that a drain waits for; dropping it marks the end of the run.
pub(crate) struct Present {
    drain: Drain,
    id: u64,
}

impl Drain {
    /// Creates a drain without runs.
    pub fn new() -> Self {
        Self::default()
    }

    /// True once [`drain`](Self::drain) was called: new runs fail with [`ErrorKind::Busy`].
    pub fn is_draining(&self) -> bool {
        self.state().closed
    }

    /// Returns the number of root runs that are running.
    pub fn running(&self) -> usize {
        self.state().runs.len()
    }

    /// Refuses new runs, pauses the running ones at their next boundary, and cancels those that
    /// have not reached it `within` this time. The runs must be polled meanwhile, for example in
    /// their own tasks.
    ///
    /// Every stopped run ends with a checkpoint, which its journal holds too: resume it with
    /// [`RunRequest::recover`](agent_core::RunRequest).
    pub async fn drain(&self, within: Duration) -> Drained {
        let running = {
            let mut state = self.state();
            state.closed = true;
            state.runs.values().for_each(RunHandle::pause);
            state.runs.len()
        };
        let late = match timeout(within, self.empty()).await {
            Ok(()) => 0,
            Err(_) => {
                let state = self.state();
                state.runs.values().for_each(RunHandle::cancel);
                state.runs.len()
            }
        };
        let left = match timeout(GRACE, self.empty()).await {
            Ok(()) => 0,
            Err(_) => self.running(),
        };
        Drained { ended: running - late, cancelled: late - left.min(late), left }
    }

    async fn empty(&self) {
        loop {
            let fewer = self.0.fewer.notified();
            if self.running() == 0 {
                return;
            }
            fewer.await;
        }
    }

    /// Registers a run that starts.
    pub(crate) fn enter(&self, run: RunHandle) -> Result<Present> {
        let mut state = self.state();
        state.admits()?;
        state.last += 1;
        let id = state.last;
        state.runs.insert(id, run);
        Ok(Present { drain: self.clone(), id })
    }

    /// Refuses a run that was queued until the drain began.
    pub(crate) fn admits(&self) -> Result<()> {
        self.state().admits()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn admits(&self) -> Result<()> {
        if self.closed {
            let message = "the application is shutting down: the run did not begin; start it in another process";
            return Err(Error::new(ErrorKind::Busy, message));
        }
        Ok(())
    }
}

impl Drop for Present {
    fn drop(&mut self) {
        let run = self.drain.state().runs.remove(&self.id);
        drop(run); // outside of the mutex
        self.drain.0.fewer.notify_waiters();
    }
}

/// Waits for SIGINT or SIGTERM (on other platforms: Ctrl-C) and returns its name. Applications call
/// [`drain`](Drain::drain) afterwards. From the first call on, these signals no longer terminate
/// the process.
///
/// # Errors
/// If the operating system refuses to register the signal handlers.
pub async fn shutdown_signal() -> io::Result<&'static str> {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        Ok(tokio::select! {
            _ = interrupt.recv() => "SIGINT",
            _ = terminate.recv() => "SIGTERM",
        })
    }
    #[cfg(not(unix))]
    {
        tokio::signal::ctrl_c().await?;
        Ok("Ctrl-C")
    }
}

impl fmt::Debug for Drain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state();
        f.debug_struct("Drain").field("draining", &state.closed).field("running", &state.runs.len()).finish()
    }
}
