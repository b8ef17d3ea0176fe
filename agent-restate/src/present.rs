//! Registry of the runs that a process drives: [`Present`].

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use agent_core::{Error, ErrorKind, Result};
use tokio::{sync::Notify, time::timeout};

use crate::step_log::StepLog;

/// Runs that this process drives, by invocation id. On shutdown the active runs leave, and no new
/// ones are accepted.
#[derive(Default)]
pub(crate) struct Present {
    state: Mutex<State>,
    fewer: Notify,
}

#[derive(Default)]
struct State {
    runs: HashMap<String, Weak<StepLog>>,
    ends: bool,
}

impl Present {
    /// Registers a run, so that signals find it, until the guard is dropped.
    ///
    /// # Errors
    /// [`ErrorKind::Busy`] if the process shuts down: another process resumes the run.
    pub(crate) fn enter<'a>(&'a self, invocation: &str, steps: &'a Arc<StepLog>) -> Result<Gone<'a>> {
        let mut state = self.lock();
        if state.ends {
            return Err(ends());
        }
        state.runs.insert(invocation.to_owned(), Arc::downgrade(steps));
        Ok(Gone { present: self, invocation: invocation.to_owned(), steps })
    }

    /// Returns the run of an invocation, if this process drives it.
    pub(crate) fn find(&self, invocation: &str) -> Option<Arc<StepLog>> {
        self.lock().runs.get(invocation).and_then(Weak::upgrade)
    }

    /// Lets all runs leave at their next safe point: external calls in progress finish and are
    /// recorded, and no new ones begin. Waits at most `within` until all runs have left.
    pub(crate) async fn leave(&self, within: Duration) {
        let runs: Vec<_> = {
            let mut state = self.lock();
            state.ends = true;
            state.runs.values().filter_map(Weak::upgrade).collect()
        };
        runs.iter().for_each(|steps| steps.leaves(ends()));
        drop(runs);
        if timeout(within, self.empty()).await.is_err() {
            tracing::warn!(runs = self.lock().runs.len(), "runs did not reach a safe point in time and are aborted");
        }
    }

    async fn empty(&self) {
        loop {
            let fewer = self.fewer.notified();
            if self.lock().runs.is_empty() {
                return;
            }
            fewer.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the error that ends an attempt because of the shutdown.
fn ends() -> Error {
    Error::new(ErrorKind::Busy, "the process ends: another process resumes the run")
}

/// Guard that removes a run from the registry when this process no longer drives it.
pub(crate) struct Gone<'a> {
    present: &'a Present,
    invocation: String,
    steps: &'a Arc<StepLog>,
}

impl Drop for Gone<'_> {
    fn drop(&mut self) {
        let mut state = self.present.lock();
        // The next attempt may already be registered in this process.
        let is_own = |steps: &Weak<StepLog>| std::ptr::eq(steps.as_ptr(), Arc::as_ptr(self.steps));
        if state.runs.get(&self.invocation).is_some_and(is_own) {
            state.runs.remove(&self.invocation);
        }
        drop(state);
        self.present.fewer.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempt() -> Arc<StepLog> {
        Arc::new(StepLog::new(Duration::from_secs(30), "worker".into()))
    }

    #[test]
    fn an_attempt_that_ends_late_leaves_the_next_one_where_it_is_found() {
        let (present, attempts) = (Present::default(), [attempt(), attempt()]);
        let enter = |steps| present.enter("invocation", steps).expect("is let in");
        let [first, second] = attempts.each_ref().map(enter);
        drop(first);
        assert!(present.find("invocation").is_some_and(|found| Arc::ptr_eq(&found, &attempts[1])));
        drop(second);
        assert!(present.find("invocation").is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn a_run_leaves_a_process_that_ends_when_its_call_is_over_and_none_comes_any_more() {
        let (present, steps) = (Present::default(), attempt());
        let is_here = present.enter("invocation", &steps).expect("is let in");
        let attempt = async {
            let running = steps.running(None).await;
            tokio::time::sleep(Duration::from_secs(5)).await;
            drop(running);
            let why = steps.failed().await;
            assert!(why.message().contains("the process ends"), "{why}");
            drop(is_here);
        };
        let began = tokio::time::Instant::now();
        tokio::join!(attempt, async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            present.leave(Duration::from_secs(20)).await;
        });
        assert_eq!(began.elapsed(), Duration::from_secs(5));
        let begins = tokio::time::timeout(Duration::from_secs(9), steps.running(None)).await;
        assert!(begins.is_err(), "nothing more begins");
        assert!(present.enter("invocation", &steps).is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn a_run_that_leaves_makes_the_call_that_is_kept_as_begun_and_no_other() {
        let steps = attempt();
        drop(timeout(Duration::ZERO, steps.next()).await); // replays all recorded batches
        steps.intends("r/1/paid".to_owned());
        steps.leaves(ends());
        let soon = Duration::from_secs(1);
        assert!(timeout(soon, steps.failed()).await.is_err(), "it would be in doubt");
        assert!(timeout(soon, steps.running(Some("r/1/other"))).await.is_err());
        drop(steps.running(Some("r/1/paid")).await);
        assert!(steps.failed().await.message().contains("the process ends"));
    }
}
