//! Deletion of sessions with queued jobs.

use agent::{SessionId, core::dispatch::Wanted};

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
}
