//! Cancelling a run that is under way nowhere.

use agent::{
    ErrorKind,
    core::dispatch::Signal,
    journal::{Entry, EntryBody, RunStatus},
};

use super::{FoundRun, brought::Over, view::RunStatus as Standing};
use crate::{clock::now, error::ApiError};

impl FoundRun {
    /// Cancels it, whether it is under way in this process or at rest: one that waits for an answer, that was paused, or that waits for its
    /// turn is over then. False if it was over before, or is under way elsewhere.
    ///
    /// # Errors
    /// 409 if another process goes on with it at this moment; those of the store.
    pub async fn call_off(&self) -> Result<bool, ApiError> {
        let is_told = self.tell_run(Signal::Cancel).await?;
        // One that was given up hears it when it is retried, and ends here if it waits.
        if is_told && !matches!(self.standing(true).await?, Some((Standing::Failed, _))) {
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

    /// Writes down that it is cancelled, while nobody else may go on with it.
    async fn end_as_cancelled(&self) -> Result<bool, ApiError> {
        let journal = self.app().journal();
        let writer = journal.open(self.store_name(), self.agent()).await.map_err(|error| match error.kind() {
            ErrorKind::Busy => ApiError::conflict("elsewhere", "another process goes on with the run: ask again"),
            _ => error.into(),
        })?;
        let Some(record) = self.record().await?.filter(|record| is_open(record.status.as_ref())) else {
            return Ok(false);
        };
        let usage = Box::new(record.usage);
        let body = EntryBody::RunEnded { status: RunStatus::Cancelled, usage, error: None, answer: None };
        writer.append(vec![Entry::new(self.id().into(), now(), body)]).await?;
        drop(writer);
        self.app().unmark(self.store_name(), self.id()).await?;
        Ok(true)
    }
}

/// True if it stopped where it can be gone on with.
fn is_open(status: Option<&RunStatus>) -> bool {
    matches!(status, Some(RunStatus::Interrupted | RunStatus::Paused))
}
