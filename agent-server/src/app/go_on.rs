//! Resumption of stopped runs.

use std::collections::BTreeMap;

use agent::{RunRequest, dispatch::Dispatched, exec::check_answer, run::Answer};

use super::{
    App, FoundRun,
    brought::StartOptions,
    local::{Asked, Entered, NotEntered, resuming},
    start::{caps, too_many},
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
        self.agent(caller, run.agent())?;
        let brings_answers = !answers.is_empty();
        let untaken =
            || ApiError::conflict("busy", "the run already resumed without these answers: check its open questions");
        if run.is_live() {
            return if brings_answers { Err(untaken()) } else { Ok(run.clone()) };
        }
        self.allow()?;
        let open = run.checkpoint().await?;
        // Check here: the backend could only reject an answer after this response.
        if let Some(open) = &open {
            answers.iter().try_for_each(|(id, answer)| check_answer(open, id, answer))?;
        }
        let answers = answers.into_iter().collect();
        let found = match self.remote() {
            Some(remote) => {
                remote.answer(&run.address(), answers).await?;
                run.clone()
            }
            None => {
                if open.is_none() {
                    return Err(ApiError::conflict("over", format!("the run '{}' is over", run.id())));
                }
                let before = self.kept(run.store_name(), run.id()).await?;
                let mut request = shape(RunRequest::recover_with(run.store_name().clone(), []));
                request.caps = caps(caller, request.caps);
                let request = self.allow_spending(caller, request);
                let first = before.as_ref().map(|before| before.brought.clone()).unwrap_or_default();
                let options = StartOptions::of(&request).since(first);
                self.check_allowances(options.allowances()).await?;
                let (job, resources) = (resuming(&run.address(), &options)?, request.resources);
                let began = run.record().await?.map(|record| record.seq);
                let asked = Asked { began, resources, ..Asked::new(caller, job).before(before) };
                match self.0.local.enter(asked) {
                    Ok(entered) => self.resumed(run, entered, answers).await?,
                    Err(NotEntered::TooMany(most)) => return Err(too_many(most)),
                    Err(NotEntered::Active(_)) if brings_answers => return Err(untaken()),
                    Err(NotEntered::Active(live)) => FoundRun::of_live(self.clone(), live),
                }
            }
        };
        self.tell_when_at_rest(&found);
        Ok(found)
    }

    /// Waits until the run has begun again.
    async fn resumed(
        &self,
        run: &FoundRun,
        entered: Entered,
        answers: BTreeMap<String, Answer>,
    ) -> Result<FoundRun, ApiError> {
        let live = entered.run.clone();
        let started = self.0.local.start(entered, Some(answers)).await;
        let started = started.map_err(|error| ApiError::of(&error).renamed(run.store_name(), &run.session()))?;
        Ok(match started {
            Dispatched::New => FoundRun::of_live(self.clone(), live),
            _ => run.clone(), // it waits for the answers that it has waited for
        })
    }
}
