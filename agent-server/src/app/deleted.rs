//! Deletion of sessions with queued jobs.

use std::time::{Duration, SystemTime};

use agent::{SessionId, dispatch::Wanted, store::Retention};

use super::App;
use crate::error::ApiError;

impl App {
    /// Deletes a session and its jobs that no worker has claimed, so that none of them begins.
    ///
    /// # Errors
    /// 409 while a run of the session is active; the errors of the store and of the queue.
    pub(crate) async fn delete_session(&self, session: &SessionId) -> Result<(), ApiError> {
        let jobs = match &self.0.queue {
            Some(queue) => queue.jobs(&Wanted::default().session(session.to_string()).most(usize::MAX)).await?,
            None => Vec::new(),
        };
        self.sessions().delete(session).await?;
        if let Some(queue) = &self.0.queue {
            for job in jobs {
                queue.remove(&job.job.at).await?;
            }
        }
        Ok(())
    }

    /// Deletes sessions without an entry within `age`, and jobs that finished longer ago,
    /// periodically, until the server drains.
    pub(crate) async fn keep_retaining(&self, age: Duration) {
        const PAUSE: Duration = Duration::from_secs(3600);
        while !self.is_draining() {
            let deleted = Retention::default().older_than(age).apply(&**self.journal(), SystemTime::now()).await;
            let purged = match &self.0.queue {
                Some(queue) => queue.purge(age).await,
                None => Ok(0),
            };
            match (deleted, purged) {
                (Ok(deleted), Ok(0)) if deleted.is_empty() => {}
                (Ok(deleted), Ok(jobs)) => {
                    tracing::info!(sessions = deleted.len(), jobs, "expired sessions and jobs were deleted");
                }
                (Err(error), _) | (_, Err(error)) => {
                    tracing::warn!(%error, "expired sessions or jobs could not be deleted");
                }
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}
