//! Resumption of stopped runs.

use std::sync::Arc;

use agent::{RunRequest, exec::check_answer, run::Answer};

use super::{
    App, FoundRun,
    brought::PersistedRequest,
    live::{Asked, LiveRun, Phase},
    names,
    start::caps,
};
use crate::{caller::Caller, error::ApiError};

impl App {
    /// Resumes a run from its state in the journal, with answers by question id, and returns once
    /// it has begun. `shape` adds what a request repeats: tools and parameters. Everything else,
    /// including the limits, is as in the run's first request. If the run is already active in this
    /// process, it is returned.
    ///
    /// # Errors
    /// 409 if an answer is rejected, the session is busy, the run is over, or it already resumed
    /// without these answers; 429 if the caller has reached the key's limit of active runs; 503 if
    /// the server is shutting down.
    pub async fn go_on(
        &self,
        caller: &Caller,
        run: &FoundRun,
        answers: Vec<(String, Answer)>,
        shape: impl FnOnce(RunRequest) -> RunRequest,
    ) -> Result<FoundRun, ApiError> {
        let newest = self.agent(caller, run.agent())?;
        let brings_answers = !answers.is_empty();
        let untaken =
            || ApiError::conflict("busy", "the run already resumed without these answers: check its open questions");
        if run.handle().is_some() {
            return if brings_answers { Err(untaken()) } else { Ok(run.clone()) };
        }
        self.allow()?;
        if let Some(dispatch) = self.dispatch() {
            // Check here: the backend could only reject an answer after this response.
            if let Some(open) = run.checkpoint().await? {
                answers.iter().try_for_each(|(id, answer)| check_answer(&open, id, answer))?;
            }
            let found = run.answer_elsewhere(&**dispatch, answers).await?;
            self.tell_when_at_rest(&found);
            return Ok(found);
        }
        let over = || ApiError::conflict("over", format!("the run '{}' is over", run.id()));
        let open = run.checkpoint().await?.ok_or_else(over)?;
        let record = run.record().await?;
        let began = record.as_ref().map(|record| record.seq);
        let then = record.and_then(|record| self.0.agents.when(run.agent(), record.started, &open.fingerprint));
        let agent = then.unwrap_or_else(|| newest.agent().clone());
        let before = self.kept(run.store_name(), run.id()).await?;
        let mut request = shape(RunRequest::recover_with(run.store_name().clone(), answers).streaming(true));
        request.caps = caps(caller, request.caps);
        request = self.allow_spending(caller, request);
        if let Some(before) = &before {
            request = before.brought.again(request, agent.tools())?;
        }
        let request = self.charge(request).await?;
        let kept = PersistedRequest::lasting(agent.name(), &request);
        let is_kept = before.is_some_and(|before| kept.as_ref().is_none_or(|kept| kept.brought == before.brought));
        let asked = Asked {
            caller,
            id: open.ids.run_id.clone(),
            agent: agent.name().into(),
            session: run.store_name().clone(),
            digest: None,
            began,
            kept,
            is_kept,
        };
        let (live, is_new) = self.0.live.drive(asked, || agent.start(request))?;
        if !is_new && brings_answers {
            return Err(untaken());
        }
        let found = self.begun(live).await?;
        self.unmark(found.store_name(), found.id()).await?;
        self.tell_when_at_rest(&found);
        Ok(found)
    }

    /// Waits until the run has begun.
    pub(super) async fn begun(&self, live: Arc<LiveRun>) -> Result<FoundRun, ApiError> {
        match live.begins().await {
            Phase::Ended(end) if live.begun().is_none() => match &*end {
                Err(error) => Err(ApiError::of(error).renamed(live.session(), &names::public(live.session()))),
                Ok(_) => Ok(FoundRun::of_live(self.clone(), live)),
            },
            _ => Ok(FoundRun::of_live(self.clone(), live)),
        }
    }
}
