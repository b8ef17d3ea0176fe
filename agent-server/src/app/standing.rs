//! Job status of a run in the execution backend.

use agent::dispatch::{JobStatus, JobStatusKind, Wanted};

use super::{FoundRun, view::RunStatus};
use crate::error::ApiError;

/// Failure of a dead letter.
pub(super) struct GivenUp {
    pub(super) error: String,
    /// Time of the failure, if known: milliseconds since 1970, UTC.
    pub(super) at: Option<u64>,
}

impl FoundRun {
    /// Returns the run's status in the execution backend, as far as it exceeds the journal's
    /// knowledge.
    pub(super) async fn standing(&self, is_in_journal: bool) -> Result<Option<(RunStatus, Option<GivenUp>)>, ApiError> {
        let Some(dispatch) = self.app().remote() else { return Ok(None) };
        Ok(match dispatch.standing(&self.address()).await? {
            Some(JobStatus::Queued) => Some((RunStatus::Queued, None)),
            Some(JobStatus::Running { .. }) => Some((RunStatus::Running, None)),
            Some(JobStatus::Dead { error }) => {
                Some((RunStatus::Failed, Some(GivenUp { error, at: self.given_up_at().await? })))
            }
            Some(JobStatus::AtRest) if !is_in_journal => Some((RunStatus::Paused, None)),
            Some(JobStatus::Done) if !is_in_journal => Some((RunStatus::Cancelled, None)),
            _ => None,
        })
    }

    /// Returns the time at which the run became a dead letter, if known.
    async fn given_up_at(&self) -> Result<Option<u64>, ApiError> {
        let Some(queue) = &self.app().0.queue else { return Ok(None) };
        let mut wanted = Wanted::default().session(&**self.store_name()).run(self.id());
        wanted.standing = Some(JobStatusKind::Dead);
        let jobs = queue.jobs(&wanted).await?;
        Ok(jobs.into_iter().find(|job| job.job.at == self.address()).map(|job| job.changed))
    }
}
