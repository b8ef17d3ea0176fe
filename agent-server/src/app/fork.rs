//! Forks: runs that continue from a step of another run, in a session of their own.

use std::sync::Arc;

use agent::{Agent, Checkpoint, RunRequest, dispatch::Dispatch};

use super::{
    App, FoundRun,
    brought::PersistedRequest,
    live::Asked,
    names::{self, Named},
    start::caps,
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
        if let Some(dispatch) = self.dispatch() {
            return self.fork_elsewhere(&**dispatch, caller, &agent, fork).await;
        }
        let mut request = RunRequest::resume(fork, []).streaming(true);
        request.caps = caps(caller, request.caps);
        let request = self.charge(self.allow_spending(caller, request)).await?;
        let (agent_name, kept) = (agent.name().into(), PersistedRequest::lasting(agent.name(), &request));
        let asked = Asked { caller, id, agent: agent_name, session, digest: None, began: None, kept, is_kept: false };
        let (live, _) = self.0.live.drive(asked, || agent.start(request))?;
        let found = self.begun(live).await?;
        self.hook_usual(caller, &found, Vec::new()).await?;
        Ok(found)
    }

    /// Lets the execution backend run the fork: it is written as a paused run, which the backend
    /// resumes.
    async fn fork_elsewhere(
        &self,
        dispatch: &dyn Dispatch,
        caller: &Caller,
        agent: &Agent,
        fork: Checkpoint,
    ) -> Result<FoundRun, ApiError> {
        if self.0.queue.is_none() {
            let message = "the execution backend stores its own sessions and does not support forks: start a new session with the history as input";
            return Err(ApiError::invalid(message));
        }
        let session = fork.ids.session.clone();
        let begins = RunRequest::new(Vec::new()).session(session.clone()).run_id(fork.ids.run_id.clone());
        let begins = self.charge(self.of_caller(caller, begins)).await?;
        let written = agent.start(RunRequest::resume(fork, []));
        written.handle().pause();
        let written = written.await;
        written.map_err(|error| ApiError::of(&error).renamed(&session, &names::public(&session)))?;
        let handed_over = self.hand_over(dispatch, caller, agent.name().into(), &begins, None, Vec::new()).await;
        if handed_over.is_err()
            && let Err(error) = self.journal().delete(&session).await
        {
            tracing::warn!(%session, %error, "an abandoned fork could not be removed: delete its session");
        }
        handed_over
    }
}
