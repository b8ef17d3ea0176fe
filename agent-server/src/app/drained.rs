//! Runs that a draining process brought to a safe point, and that the next process resumes.
//!
//! A run is marked before it is stopped, so that a crash in between leaves no run behind. Runs that
//! a user stopped are not marked, and stay stopped.

use std::time::Duration;

use agent::{
    Result,
    exec::Drained,
    journal::{Journal, SessionIndex},
};
use futures::{StreamExt, stream};
use tokio::time::timeout;

use super::{App, live::Phase, notes::note};

/// Maximum number of runs that are marked concurrently.
const AT_ONCE: usize = 32;
/// Time limit for marking, and afterwards for persisting the state of the stopped runs.
const LONGEST: Duration = Duration::from_secs(2);

/// Returns the storage key that marks a run.
fn key(run: &str) -> String {
    format!("agent-server/drained/{run}")
}

/// True if a draining process brought the run to a safe point.
pub(super) fn is_drained(index: &SessionIndex, run: &str) -> bool {
    index.globals().get(&key(run)).is_some()
}

/// Sets or removes the mark of a run.
pub(super) async fn mark(journal: &dyn Journal, session: &str, run: &str, is_drained: bool) -> Result<()> {
    note(journal, session, &key(run), is_drained.then(|| true.into())).await
}

/// Removes the mark of a resumed run: it may stop for another reason next time.
pub(super) async fn unmark(journal: &dyn Journal, session: &str, run: &str) -> Result<()> {
    if journal.index(session).await?.look(|index| is_drained(index, run)) {
        mark(journal, session, run, false).await?;
    }
    Ok(())
}

impl App {
    /// Rejects new runs, and brings active ones to a safe point, from which another process resumes
    /// them.
    pub(crate) async fn end_runs(&self, within: Duration) -> Drained {
        let marking = stream::iter(self.0.local.all()).for_each_concurrent(AT_ONCE, |run| async move {
            let Some(begun) = run.begun().filter(|_| !run.is_stopped()) else { return };
            match mark(&**self.journal(), &begun.session, run.id(), true).await {
                Ok(()) => run.set_marked(),
                Err(error) => tracing::warn!(run = run.id(), %error, "a run could not be marked for resumption before it was stopped"),
            }
        });
        // Runs that are not marked by then are marked when they have stopped.
        let _ = timeout(LONGEST.min(within), marking).await;
        self.0.ending.cancel();
        let drained = self.0.drain.drain(within).await;
        let settled = stream::iter(self.0.local.all()).for_each_concurrent(None, |run| async move {
            run.reaches(Phase::Ended).await;
        });
        let _ = timeout(LONGEST, settled).await;
        drained
    }
}
