//! Cancellation of suspended and queued runs.

use agent::{
    ErrorKind,
    dispatch::Signal,
    journal::{Entry, EntryBody, RunStatus},
};

use super::{FoundRun, brought::Over, drained::unmark, view::RunStatus as JobStatus};
use crate::{clock::now, error::ApiError};

impl FoundRun {
    /// Cancels the run, whether it is active in this process or suspended: a run that waits for an
    /// answer, was paused, or is queued ends then. Returns `false` if it was already over, or is
    /// active in another process.
    ///
    /// # Errors
    /// 409 if another process is resuming the run at this moment; the errors of the store.
    pub async fn call_off(&self) -> Result<bool, ApiError> {
        let is_told = self.tell_run(Signal::Cancel).await?;
        // A dead job takes the cancellation for its retry; a suspended run ends here.
        if is_told && !matches!(self.standing(true).await?, Some((JobStatus::Failed, _))) {
            return Ok(true);
        }
        match self.record().await? {
            Some(record) if is_open(record.status.as_ref()) => Ok(self.end_as_cancelled().await? || is_told),
            Some(_) => Ok(is_told),
            None => match self.app().kept(self.store_name(), self.id()).await? {
                Some(kept) if kept.over.is_none() => {
                    kept.end(&**self.app().journal(), self.store_name(), self.id(), Over::Cancelled).await?;
                    Ok(true)
                }
                _ => Ok(is_told),
            },
        }
    }

    /// Records the cancellation in the journal, under a lease so that no other process can resume
    /// the run.
    async fn end_as_cancelled(&self) -> Result<bool, ApiError> {
        let journal = self.app().journal();
        let writer = journal.open(self.store_name(), self.agent()).await.map_err(|error| match error.kind() {
            ErrorKind::Busy => {
                ApiError::conflict("elsewhere", "another process is resuming the run: retry the request")
            }
            _ => error.into(),
        })?;
        let Some(record) = self.record().await?.filter(|record| is_open(record.status.as_ref())) else {
            return Ok(false);
        };
        let usage = Box::new(record.usage);
        let body = EntryBody::RunEnded { status: RunStatus::Cancelled, usage, error: None, answer: None };
        writer.append(vec![Entry::new(self.id().into(), now(), body)]).await?;
        drop(writer);
        unmark(&**self.app().journal(), self.store_name(), self.id()).await?;
        Ok(true)
    }
}

/// True if the run stopped in a state that can be resumed.
fn is_open(status: Option<&RunStatus>) -> bool {
    matches!(status, Some(RunStatus::Interrupted | RunStatus::Paused))
}
