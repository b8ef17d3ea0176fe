//! Runs that a process brought to a safe point because it was about to end: the next process goes on with them.
//!
//! That is noted in the session itself. A run that anybody stopped has no such mark: stopping is what stays without a word.

use std::{collections::BTreeMap, sync::Arc};

use agent::journal::SessionIndex;

use super::App;
use crate::error::ApiError;

/// The key of the storage that marks a run.
fn key(run: &str) -> String {
    format!("agent-server/drained/{run}")
}

/// True if the run was brought to a safe point by a process that was about to end.
pub(super) fn is_drained(index: &SessionIndex, run: &str) -> bool {
    index.globals().get(&key(run)).is_some()
}

impl App {
    /// Marks the runs that stopped because this process is about to end.
    pub(crate) async fn mark_drained(&self) {
        for run in self.0.live.take_drained() {
            if let Err(error) = self.mark(run.session(), &run.id, true).await {
                tracing::error!(run = &*run.id, %error, "a run that was brought to a safe point is not gone on with by itself");
            }
        }
    }

    /// The run goes on: when it stops the next time, it is for another reason.
    pub(super) async fn unmark(&self, session: &Arc<str>, run: &str) -> Result<(), ApiError> {
        let index = self.journal().index(session).await?;
        if index.look(|index| is_drained(index, run)) {
            self.mark(session, run, false).await?;
        }
        Ok(())
    }

    async fn mark(&self, session: &str, run: &str, is_drained: bool) -> Result<(), ApiError> {
        self.note(session, BTreeMap::from([(key(run), is_drained.then(|| true.into()))])).await
    }
}
