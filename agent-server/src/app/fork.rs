//! Forks: runs that continue from a step of another run, in a session of their own.

use std::sync::Arc;

use agent::{Checkpoint, RunRequest};

use super::{
    App, FoundRun,
    dispatched::Sent,
    names::{self, Named},
};
use crate::{caller::Caller, error::ApiError};

impl App {
    /// Starts a fork as a run of a new session.
    ///
    /// # Errors
    /// The errors of starting a run.
    pub(crate) async fn start_fork(&self, caller: &Caller, mut fork: Checkpoint) -> Result<FoundRun, ApiError> {
        let agent = self.agent(caller, &fork.ids.agent)?.agent().clone();
        let session = fork.ids.session.clone();
        let id: Arc<str> = Named::new(caller, agent.name(), Some(&names::public(&session)), None)?.run.into();
        (fork.ids.run_id, fork.ids.root_run_id) = (id.clone(), id.clone());
        self.allow()?;
        if self.remote().is_some() && self.0.queue.is_none() {
            let message = "the execution backend stores its own sessions and does not support forks: start a new session with the history as input";
            return Err(ApiError::invalid(message));
        }
        let begins = RunRequest::new(Vec::new()).session(session.clone()).run_id(id.clone());
        let begins = self.of_caller(caller, begins);
        self.check_spending(&begins).await?;
        // The fork is written as a paused run, which the execution backend resumes.
        let written = agent.start(RunRequest::resume(fork, []));
        written.handle().pause();
        let written = written.await;
        written.map_err(|error| ApiError::of(&error).renamed(&session, &names::public(&session)))?;
        let began = self.look(&session, |index| index.run(&id).map(|(_, record)| record.seq)).await?;
        let sent = Sent { digest: None, hooks: Vec::new(), began, may_be_known: false };
        let handed_over = self.hand_over(caller, agent.name(), &begins, sent).await;
        if handed_over.is_err()
            && let Err(error) = self.journal().delete(&session).await
        {
            tracing::warn!(%session, %error, "an abandoned fork could not be removed: delete its session");
        }
        handed_over
    }
}
