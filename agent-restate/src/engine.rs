//! Durable engine of a run on Restate.

use std::{
    borrow::Cow,
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::Duration,
};

use agent_core::{
    Answer, Error, ErrorKind, Journal, Question, Result, RunRequest, async_trait,
    engine::{Durable, ServedEnd, ServedRun, Step, StepBody, StepKind, StepResult},
    journal::RunStatus,
};
use agent_dispatch::Job;
use agent_exec::RunHandle;
use serde_json::value::RawValue;

use crate::{
    Outcome,
    blobs::Blobs,
    callers::Callers,
    past::{SessionHandle, SessionLog},
    record::{Called, Record, Stored, parsed, raw, size},
    step_log::{StepLog, Told, now},
};

/// Engine of one attempt at a run: the executor's interface to Restate.
pub(crate) struct Engine {
    steps: Arc<StepLog>,
    blobs: Blobs,
    session: Arc<SessionLog>,
    run: OnceLock<RunHandle>,
    callers: Callers,
    /// Signal that each question waits for, by run and question id.
    signals: Mutex<HashMap<(Arc<str>, String), Waits>>,
    /// Tenant and trace context that the runs called by this run inherit.
    tenant: String,
    traceparent: Option<Arc<str>>,
}

/// Signal that a question waits for.
struct Waits {
    digest: String,
    signal: String,
}

impl Engine {
    pub(crate) fn new(
        steps: Arc<StepLog>,
        blobs: Blobs,
        session: Arc<SessionLog>,
        callers: Callers,
        job: &Job,
    ) -> Self {
        let (tenant, traceparent) = (job.tenant.clone(), job.traceparent.clone());
        Self { steps, blobs, session, run: OnceLock::new(), callers, signals: Mutex::default(), tenant, traceparent }
    }

    /// Sets the handle of the run that this engine drives.
    pub(crate) fn drives(&self, run: RunHandle) {
        _ = self.run.set(run);
    }

    /// Applies pause and cancel signals to the run once the attempt has replayed all recorded
    /// steps. Never returns.
    pub(crate) async fn obey<T>(&self) -> T {
        let mut paused = 0;
        loop {
            let news = |told: &Told| {
                let is_new = told.cancel || told.pause > Some(paused);
                self.run.get().filter(|_| is_new).map(|run| (run, told.cancel, told.pause))
            };
            let (run, cancel, pause) = self.steps.until_told(news).await;
            paused = pause.unwrap_or(paused);
            if pause.is_some() {
                run.pause();
            }
            if cancel {
                run.cancel();
                std::future::pending::<()>().await;
            }
        }
    }

    /// Applies pending signals before a step that has no recorded result.
    async fn begin(&self, step: &Step) -> Result<()> {
        let Some(run) = self.run.get() else { return Ok(()) };
        if matches!(step.kind, StepKind::Steering { .. }) && step.run == *self.session.run() {
            self.steps.look().await;
            for message in self.steps.told(|told| std::mem::take(&mut told.steer)) {
                run.steer(message)?;
            }
        }
        let (cancel, pause) = self.steps.told(|told| (told.cancel, told.pause));
        if pause.is_some() {
            run.pause();
        }
        if cancel {
            run.cancel();
            return Err(Error::new(ErrorKind::Cancelled, "the run was cancelled"));
        }
        Ok(())
    }

    /// Returns the name of the signal that answers the question: the name of the step that asked it
    /// first. After a rejected answer, the same signal delivers the next one, which may have
    /// arrived already.
    fn signal(&self, step: &Step, question: &Question) -> String {
        let mut signals = self.signals.lock().unwrap_or_else(PoisonError::into_inner);
        let of = || Waits { digest: question.digest.clone(), signal: step.name() };
        let waits = signals.entry((step.run.clone(), question.id.clone())).or_insert_with(of);
        if waits.digest != question.digest {
            *waits = of(); // another question of the same id
        }
        waits.signal.clone()
    }

    /// Sleeps for this time as the step of this name.
    async fn sleep_as(&self, name: String, time: Duration) {
        let until = now().saturating_add(u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
        self.steps.wish(&name, Record::Sleeps { name: name.clone(), until }).await;
    }

    /// Builds the job that runs a remote agent.
    fn job(&self, run: &ServedRun) -> Result<Job> {
        let request = RunRequest::new(run.messages.clone()).session(run.session.clone()).run_id(run.run.clone());
        let mut job = Job::new(run.agent.clone(), &request)?.tenant(self.tenant.clone());
        (job.user, job.caps) = (run.user.clone(), run.caps);
        job.traceparent.clone_from(&self.traceparent);
        Ok(job)
    }

    /// Reads a stored value. If the blob store is unavailable, the attempt ends and Restate retries
    /// the run; the run itself does not fail.
    async fn found<'a>(&self, kept: &'a Stored) -> Cow<'a, RawValue> {
        match self.blobs.find(kept).await {
            Ok(found) => found,
            Err(e) => self.steps.fails(e).await,
        }
    }

    /// Decodes the recorded result of a step.
    fn open(&self, kept: &RawValue) -> Result<StepResult> {
        let result = parsed(kept)?;
        if let StepResult::Messages(taken) = &result {
            // Messages that an earlier attempt consumed must not be consumed again.
            self.steps.told(|told| {
                for message in taken {
                    if let Some(at) = told.steer.iter().position(|told| told == message) {
                        told.steer.remove(at);
                    }
                }
            });
        }
        Ok(result)
    }
}

#[async_trait]
impl Durable for Engine {
    fn attempt(&self) -> &str {
        self.steps.attempt()
    }

    fn journal(&self) -> Option<Arc<dyn Journal>> {
        Some(Arc::new(SessionHandle(self.session.clone())))
    }

    async fn step(&self, step: &Step, body: StepBody<'_>) -> Result<StepResult> {
        let name = step.name();
        if let Some(kept) = self.steps.earlier(&name).await {
            return self.open(&self.found(&kept).await);
        }
        self.begin(step).await?;
        let is_intent = matches!(step.kind, StepKind::Intent { .. });
        let call = call_of(step);
        let running = self.steps.running(call.as_deref().filter(|_| !is_intent)).await;
        let made = body.await?;
        let json = raw(&made)?;
        self.blobs.admits("the result of a step", json.get().len(), Blobs::MOST)?;
        let result = match self.blobs.keep(json).await {
            Ok(result) => result,
            Err(e) => {
                drop(running);
                return self.steps.fails(e).await;
            }
        };
        if matches!(step.kind, StepKind::Steering { .. }) {
            self.steps.keep_later(name, result);
            return Ok(made);
        }
        if let Some(call) = call.filter(|_| is_intent) {
            self.steps.intends(call);
        }
        self.steps.push(Record::Kept { name: name.clone(), result });
        drop(running);
        self.steps.kept(&name).await;
        Ok(made)
    }

    async fn answer(&self, step: &Step, question: &Question) -> Result<Answer> {
        let (name, signal) = (step.name(), self.signal(step, question));
        let asks = Record::Asks { name: name.clone(), question: question.id.clone(), signal };
        let kept = self.steps.wish(&name, asks).await;
        let mut answer: Answer = parsed(&self.found(&kept).await)?;
        if self.steps.is_known_by(&answer.digest, &step.run, question) {
            answer.digest.clone_from(&question.digest);
        }
        Ok(answer)
    }

    async fn paused(&self, step: &Step) -> Result<()> {
        let Some(pause) = self.steps.told(|told| told.pause) else {
            return Err(Error::new(ErrorKind::Interrupted, "the run was paused without a signal from outside"));
        };
        // Named by the number of the pause: a later attempt does not pause again.
        let name = format!("{}/pause/{pause}", step.run);
        self.steps.wish(&name, Record::Rests { name: name.clone(), pause }).await;
        Ok(())
    }

    async fn served(&self, step: &Step, run: &ServedRun) -> Result<ServedEnd> {
        self.callers.let_call(run.service.as_ref(), &run.session, run.max_depth)?;
        let (name, job) = (step.name(), Box::new(self.job(run)?));
        may_be_sent(&job)?;
        let calls = Record::Calls { name: name.clone(), service: run.service.clone(), job };
        let too_late = async {
            match run.timeout {
                Some(time) => self.sleep_as(format!("{name}/timeout"), time).await,
                None => std::future::pending().await,
            }
        };
        let called = tokio::select! {
            biased;
            kept = self.steps.wish(&name, calls) => parsed(&self.found(&kept).await)?,
            () = too_late => Called::GivenUp,
        };
        end_of(&run.agent, called)
    }

    async fn sleep(&self, step: &Step, time: Duration) -> Result<()> {
        self.sleep_as(step.name(), time).await;
        Ok(())
    }
}

/// Returns the identity of the tool call that a step belongs to, if any.
fn call_of(step: &Step) -> Option<String> {
    match &step.kind {
        StepKind::Intent { step: n, call_id } | StepKind::Tool { step: n, call_id, .. } => {
            Some(format!("{}/{n}/{call_id}", step.run))
        }
        _ => None,
    }
}

/// Rejects a job that is too large for Restate: unlike a step result, a job cannot be stored as a
/// blob.
fn may_be_sent(job: &Job) -> Result<()> {
    let bytes = size(job);
    if bytes <= Blobs::MOST {
        return Ok(());
    }
    Err(Error::tool(format!(
        "Agent '{}' was not called: a message of {bytes} bytes is more than can be sent, which is {}. Send a shorter one, such as the name of a file or of \
         another place that holds the rest.",
        job.at.agent,
        Blobs::MOST
    )))
}

/// Converts the outcome of a called run into the result of the call.
fn end_of(agent: &str, called: Called) -> Result<ServedEnd> {
    let Outcome { status, answer, error, error_kind, usage, .. } = match called {
        Called::Ended(outcome) => outcome,
        Called::Failed(why) => return Err(Error::tool(format!("Agent '{agent}' could not be called: {why}"))),
        Called::GivenUp => {
            let message = format!("agent '{agent}' did not answer in time and was cancelled");
            return Err(Error::new(ErrorKind::Timeout, message));
        }
    };
    let failed = match (status, &error) {
        (RunStatus::Finished(reason), None) => return Ok(ServedEnd::new(answer.unwrap_or_default(), reason, usage)),
        (RunStatus::Cancelled, _) => format!("Agent '{agent}' was cancelled."),
        _ => format!("Agent '{agent}' failed: {}", error.unwrap_or_else(|| "it stopped before its end".to_owned())),
    };
    let failed = Error::tool(failed);
    let failed = error_kind.into_iter().fold(failed, |failed, kind| failed.with_context("kind", kind.as_str()));
    Ok(ServedEnd::failed(&failed, usage))
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("steps", &self.steps).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_that_is_larger_than_restate_takes_is_not_sent_and_the_model_is_told_what_helps() {
        let job = |bytes: usize| Job::new("travel", &RunRequest::user("x".repeat(bytes)).run_id("r")).expect("is data");
        may_be_sent(&job(1_000)).expect("has room");
        let error = may_be_sent(&job(Blobs::MOST)).expect_err("has none");
        assert!(error.kind() == ErrorKind::Tool && error.message().contains("Send a shorter one"), "{error}");
    }
}
