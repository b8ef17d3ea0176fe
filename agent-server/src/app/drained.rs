//! Runs that a process brought to a safe point because it was about to end: the next process goes on with them.
//!
//! A run is marked before it is told to stop, so that a process that is killed meanwhile leaves no run behind. A run that anybody
//! stopped has no such mark: stopping is what stays without a word.

use std::time::Duration;

use agent::{
    Result,
    exec::Drained,
    journal::{Journal, SessionIndex},
};
use futures::{StreamExt, stream};
use tokio::time::timeout;

use super::{App, notes::note};

/// Runs that are marked at a time.
const AT_ONCE: usize = 32;
/// How long marking may take, and then what is noted of the runs that stopped.
const LONGEST: Duration = Duration::from_secs(2);

/// The key of the storage that marks a run.
fn key(run: &str) -> String {
    format!("agent-server/drained/{run}")
}

/// True if the run was brought to a safe point by a process that was about to end.
pub(super) fn is_drained(index: &SessionIndex, run: &str) -> bool {
    index.globals().get(&key(run)).is_some()
}

/// Marks a run, or takes the mark away.
pub(super) async fn mark(journal: &dyn Journal, session: &str, run: &str, is_drained: bool) -> Result<()> {
    note(journal, session, &key(run), is_drained.then(|| true.into())).await
}

impl App {
    /// Lets no run begin, and brings those under way to a safe point, from which another process goes on.
    pub(crate) async fn end_runs(&self, within: Duration) -> Drained {
        let marking = stream::iter(self.0.live.all()).for_each_concurrent(AT_ONCE, |run| async move {
            let Some(begun) = run.begun().filter(|_| !run.is_stopped()) else { return };
            match mark(&**self.journal(), &begun.session, &run.id, true).await {
                Ok(()) => run.set_marked(),
                Err(error) => tracing::warn!(run = &*run.id, %error, "a run was not marked before it was told to stop"),
            }
        });
        // What is not marked by then is so when it has stopped.
        let _ = timeout(LONGEST.min(within), marking).await;
        self.0.ending.cancel();
        let drained = self.0.drain.drain(within).await;
        let settled = stream::iter(self.0.live.all()).for_each_concurrent(None, |run| async move {
            run.ends().await;
        });
        let _ = timeout(LONGEST, settled).await;
        drained
    }

    /// The run goes on: when it stops the next time, it is for another reason.
    pub(super) async fn unmark(&self, session: &str, run: &str) -> Result<()> {
        let index = self.journal().index(session).await?;
        if index.look(|index| is_drained(index, run)) {
            mark(&**self.journal(), session, run, false).await?;
        }
        Ok(())
    }
}
