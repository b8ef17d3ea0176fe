//! Going on with runs that stopped.

use std::sync::Arc;

use agent::{Checkpoint, RunRequest, run::Answer};

use super::{
    App, FoundRun,
    live::{Asked, LiveRun, Phase},
    names::{self, Named},
};
use crate::{caller::Caller, error::ApiError};

impl App {
    /// Goes on with a run where the journal says that it stands, with answers by question id, and answers when it has begun to. `shape`
    /// adds what a request brings again: tools, parameters. If the run is under way in this process already, that is the answer.
    ///
    /// # Errors
    /// 409 if an answer is refused, if the session is busy, or if the run is over.
    pub async fn go_on(
        &self,
        caller: &Caller,
        run: &FoundRun,
        answers: Vec<(String, Answer)>,
        shape: impl FnOnce(RunRequest) -> RunRequest,
    ) -> Result<FoundRun, ApiError> {
        let agent = self.agent(caller, run.agent())?.agent().clone();
        if run.handle().is_some() {
            return Ok(run.clone());
        }
        let over = || ApiError::conflict("over", format!("the run '{}' is over", run.id()));
        let open = run.checkpoint().await?.ok_or_else(over)?;
        let began = run.record().await?.map(|record| record.seq);
        self.release(run).await?;
        let request = shape(RunRequest::recover_with(run.store_name().clone(), answers).streaming(true));
        let asked = Asked {
            id: open.ids.run_id.clone(),
            agent: agent.name().into(),
            tenant: caller.tenant().into(),
            subject: caller.subject().into(),
            session: run.store_name().clone(),
            digest: None,
            began,
        };
        let (live, _) = self.0.live.drive(asked, || agent.start(request));
        self.begun(live).await
    }

    /// Starts a fork, which is a run of a new session.
    ///
    /// # Errors
    /// What kept the run from beginning.
    pub(crate) async fn start_fork(&self, caller: &Caller, mut fork: Checkpoint) -> Result<FoundRun, ApiError> {
        let agent = self.agent(caller, &fork.ids.agent)?.agent().clone();
        let session = names::public(&fork.ids.session);
        let id: Arc<str> = Named::new(caller, agent.name(), Some(&session), None)?.run.into();
        (fork.ids.run_id, fork.ids.root_run_id) = (id.clone(), id);
        let asked = Asked {
            id: fork.ids.run_id.clone(),
            agent: agent.name().into(),
            tenant: caller.tenant().into(),
            subject: caller.subject().into(),
            session: fork.ids.session.clone(),
            digest: None,
            began: None,
        };
        let request = RunRequest::resume(fork, []).streaming(true);
        let (live, _) = self.0.live.drive(asked, || agent.start(request));
        self.begun(live).await
    }

    /// The run, as soon as it has begun.
    async fn begun(&self, live: Arc<LiveRun>) -> Result<FoundRun, ApiError> {
        match live.begins().await {
            Phase::Ended(end) if live.begun().is_none() => match &*end {
                Err(error) => Err(ApiError::of(error).renamed(live.session(), &names::public(live.session()))),
                Ok(_) => Ok(FoundRun::of_live(self.clone(), live)),
            },
            _ => Ok(FoundRun::of_live(self.clone(), live)),
        }
    }
}
