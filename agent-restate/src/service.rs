//! Virtual object of a session and its handlers.

use std::{collections::HashMap, fmt, sync::Arc, time::Duration};

use agent_core::{Error, ErrorKind, Result, RunEnd, RunRequest, engine::Durable, journal::RunStatus};
use agent_dispatch::Job;
use agent_exec::Agent;
use futures::future::BoxFuture;
use restate_sdk::{
    endpoint::{ContextInternal, Error as EndpointError, InputMetadata},
    errors::{HandlerError, HandlerResult, TerminalError},
    serde::Json,
    service::Service,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::value::RawValue;

use crate::{
    Outcome,
    blobs::Blobs,
    callers::Callers,
    engine::Engine,
    handler::Handler,
    past::SessionLog,
    present::Present,
    record::{Record, raw},
    session::{self, Open, Page, TO_GO_ON},
    step_log::StepLog,
    tell::{AnswerRun, ReadEntries, Tell, TellRun},
};

/// Conversion of a job to a request: adds live handles, tools of a client and other things that a
/// job only names.
pub(crate) type ToRequest = Arc<dyn Fn(&Job) -> Result<RunRequest> + Send + Sync>;

/// Wrapper that is applied to the engine of every run.
pub(crate) type WrapEngine = Arc<dyn Fn(Arc<dyn Durable>) -> Arc<dyn Durable> + Send + Sync>;

/// State that all handlers of an endpoint share.
pub(crate) struct Sessions {
    pub(crate) agents: HashMap<Arc<str>, Agent>,
    pub(crate) blobs: Blobs,
    pub(crate) patience: Duration,
    /// Name of this process in the journal.
    pub(crate) worker: Arc<str>,
    pub(crate) to_request: ToRequest,
    pub(crate) wrap: WrapEngine,
    /// Runs that this process drives.
    pub(crate) present: Present,
}

/// Adapter of [`Sessions`] to the Restate SDK.
#[derive(Clone)]
pub(crate) struct SessionObject(pub(crate) Arc<Sessions>);

impl Service for SessionObject {
    type Future = BoxFuture<'static, std::result::Result<(), EndpointError>>;

    fn handle(&self, ctx: ContextInternal) -> Self::Future {
        let sessions = self.0.clone();
        Box::pin(async move {
            match ctx.handler_name() {
                "run" => on(&ctx, async |job, of| sessions.run(&ctx, job, of).await).await,
                "answer" => on(&ctx, async |input, _| answer(&ctx, input).await).await,
                "tell" => on(&ctx, async |input, _| sessions.tell(&ctx, input).await).await,
                "open" => on(&ctx, async |(), _| session::open(&ctx).await).await,
                "head" => on(&ctx, async |(), _| session::head(&ctx).await).await,
                "read" => on(&ctx, async |input, _| sessions.read(&ctx, input).await).await,
                unknown => return Err(EndpointError::unknown_handler(ctx.service_name(), unknown)),
            }
            Ok(())
        })
    }
}

/// Handles one call: decodes the input, runs the handler and encodes the result.
pub(crate) async fn on<I: DeserializeOwned + 'static, O: Serialize + 'static>(
    ctx: &ContextInternal,
    handle: impl AsyncFnOnce(I, InputMetadata) -> HandlerResult<O>,
) {
    let (Json(input), metadata) = ctx.input::<Json<I>>().await;
    let result = handle(input, metadata).await;
    ctx.handle_handler_result(result.map(Json));
    ctx.end();
}

impl Sessions {
    pub(crate) fn new(
        agents: HashMap<Arc<str>, Agent>,
        blobs: Blobs,
        patience: Duration,
        worker: Arc<str>,
        to_request: ToRequest,
        wrap: WrapEngine,
    ) -> Self {
        Self { agents, blobs, patience, worker, to_request, wrap, present: Present::default() }
    }

    /// Drives a run to its end.
    async fn run(&self, ctx: &ContextInternal, mut job: Job, of: InputMetadata) -> HandlerResult<Box<RawValue>> {
        job.at.session = of.key.as_str().into();
        let agent = self.agents.get(&job.at.agent).ok_or_else(|| self.unknown(&job.at.agent))?;
        let callers = Callers::of(ctx.service_name(), &of);
        let open = Open { run: job.at.run.clone(), invocation: of.invocation_id, asked: Default::default() };
        let head = session::head(ctx).await?;
        let past = session::since_anchor(ctx, &head, &self.blobs).await?;
        session::set_open(ctx, Some(&open)); // from here on, the end of the run clears it

        let steps = Arc::new(StepLog::new(self.patience, self.worker.clone()));
        let _present = self.present.enter(&open.invocation, &steps)?;
        let log = SessionLog::new(open.run.clone(), job.at.session.clone(), past, steps.clone(), self.blobs.clone());
        let log = Arc::new(log);
        let engine = Arc::new(Engine::new(steps.clone(), self.blobs.clone(), log, callers.clone(), &job));
        steps.push_later(Record::Began { fingerprint: agent.fingerprint().to_owned() });
        let fits = |fingerprint: &str| fits(agent, fingerprint);
        let handler = Handler::new(ctx, &steps, &self.blobs, head, open, &fits, &callers);
        let drives = async {
            let outcome = self.outcome(agent, &job, &engine).await;
            steps.push(Record::Ended { outcome: end_of(outcome)? });
            std::future::pending::<HandlerResult<Box<RawValue>>>().await
        };
        tokio::select! {
            biased;
            done = handler.run() => done,
            failed = drives => failed,
            never = engine.obey() => never,
            why = steps.failed() => Err(why.into()),
        }
    }

    /// Runs the agent and returns its outcome.
    async fn outcome(&self, agent: &Agent, job: &Job, engine: &Arc<Engine>) -> Outcome {
        let end = async {
            let request = (self.to_request)(job)?.driven_by(self.worker.clone());
            let mut request = request.durable((self.wrap)(engine.clone()));
            request.session = Some(job.at.session.clone());
            request.run_id = Some(job.at.run.clone());
            let run = agent.start(request);
            engine.drives(run.handle());
            run.await
        };
        outcome(&job.at.run, end.await)
    }

    fn unknown(&self, agent: &str) -> TerminalError {
        let mut known: Vec<_> = self.agents.keys().map(|name| &**name).collect();
        known.sort_unstable();
        let message = format!("unknown agent '{agent}': this endpoint serves {}", known.join(", "));
        TerminalError::new_with_code(422, message) // the ingress uses 404 for what it does not know itself
    }

    /// Delivers a signal to the active run. Returns `false` if another run is active.
    async fn tell(&self, ctx: &ContextInternal, TellRun { run, tell }: TellRun) -> HandlerResult<bool> {
        let Some(open) = session::open(ctx).await?.filter(|open| open.run == run) else { return Ok(false) };
        let here = self.present.find(&open.invocation);
        let heard = here.as_ref().map(|steps| steps.heard());
        let invocation = ctx.invocation_handle(open.invocation);
        match tell {
            Tell::Cancel => invocation.cancel(),
            tell => invocation.signal("told").resolve(Json(tell)),
        }
        // If this process drives the run, it consumes the signal before it begins another step.
        let hears = || async {
            if let Some((steps, heard)) = here.as_ref().zip(heard) {
                steps.hears(heard).await;
            }
            Ok(())
        };
        ctx.run(hears).await?;
        Ok(true)
    }

    async fn read(&self, ctx: &ContextInternal, ReadEntries { after, limit }: ReadEntries) -> HandlerResult<Page> {
        session::read(ctx, after, limit, &self.blobs).await
    }
}

/// Delivers answers to the active run.
async fn answer(ctx: &ContextInternal, AnswerRun { run, answers }: AnswerRun) -> HandlerResult<()> {
    let stale = |what: String| TerminalError::new_with_code(409, what);
    let open = session::open(ctx).await?.filter(|open| open.run == run);
    let open = open.ok_or_else(|| stale(format!("run '{run}' is not waiting for answers")))?;
    let signal_of = |question: &str| open.asked.get(question).map(|asked| asked.signal.clone());
    let answers = match answers.is_empty() {
        true => vec![(signal_of(TO_GO_ON), "going on".to_owned(), serde_json::Value::Null)],
        false => {
            let each = answers.into_iter().map(|(id, answer)| {
                let signal = signal_of(&id);
                (signal, id, serde_json::to_value(answer).unwrap_or_default())
            });
            each.collect()
        }
    };
    if let Some((_, id, _)) = answers.iter().find(|(signal, ..)| signal.is_none()) {
        return Err(stale(format!("run '{run}' is not waiting for an answer to '{id}'")).into());
    }
    for (signal, _, value) in answers {
        ctx.resolve_signal(&open.invocation, &signal.unwrap_or_default(), Json(value));
    }
    Ok(())
}

/// Rejects a replay with an agent other than the one the run began with. Restate retries, possibly
/// in a process with the right agent.
fn fits(agent: &Agent, fingerprint: &str) -> std::result::Result<(), HandlerError> {
    match agent.changes_since(fingerprint) {
        None => Ok(()),
        Some(changes) => Err(Error::new(
            ErrorKind::NonDeterminism,
            format!(
                "the run began with another agent '{}': keep the deployment that began it until its runs are over, and register \
                 the new one under an address of its own:\n{changes}",
                agent.name()
            ),
        )
        .into()),
    }
}

fn outcome(run: &Arc<str>, end: Result<RunEnd>) -> Outcome {
    let stands = match &end {
        Ok(end) => end.checkpoint(),
        Err(e) => e.checkpoint(),
    };
    let usage = match &end {
        Ok(RunEnd::Finished(finished)) => finished.tree_usage,
        _ => stands.map(|stands| stands.tree_usage).unwrap_or_default(),
    };
    let (status, answer, error) = match end {
        Ok(RunEnd::Finished(finished)) => (RunStatus::Finished(finished.reason), Some(finished.answer), None),
        Ok(RunEnd::Interrupted(_)) => (RunStatus::Interrupted, None, None),
        Ok(RunEnd::Paused(_)) => (RunStatus::Paused, None, None),
        Ok(RunEnd::Cancelled(_)) => (RunStatus::Cancelled, None, None),
        Ok(other) => (RunStatus::Other(other.as_str().into()), None, None),
        Err(e) if e.kind() == ErrorKind::Cancelled => (RunStatus::Cancelled, None, None),
        Err(e) => (RunStatus::Failed, None, Some(e)),
    };
    let error_kind = error.as_ref().map(Error::kind);
    Outcome { run: run.clone(), status, answer, error: error.map(|e| e.to_string()), error_kind, usage }
}

/// Encodes the outcome of a run; an outcome that is too large is replaced by an error that says so.
fn end_of(mut outcome: Outcome) -> Result<Box<RawValue>> {
    let json = raw(&outcome)?;
    if json.get().len() <= Blobs::MOST {
        return Ok(json);
    }
    let told = |text: Option<String>| text.map_or(0, |text| text.len());
    let bytes = told(outcome.answer.take()) + told(outcome.error.take());
    let message = format!("the run ended with {bytes} bytes, which exceeds Restate's limit: read them in its session");
    outcome.error = Some(message);
    raw(&outcome)
}

impl fmt::Debug for Sessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sessions")
            .field("agents", &self.agents.keys())
            .field("blobs", &self.blobs)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_that_is_larger_than_restate_takes_says_so_and_where_to_read_it() {
        let reason = agent_core::ExitReason::Text;
        let end = |bytes: usize| Outcome {
            run: "r".into(),
            status: RunStatus::Finished(reason.clone()),
            answer: Some("x".repeat(bytes)),
            error: None,
            error_kind: None,
            usage: Default::default(),
        };
        let kept =
            |bytes| -> Outcome { serde_json::from_str(end_of(end(bytes)).expect("is JSON").get()).expect("an end") };
        assert_eq!(kept(1_000), end(1_000));
        let large = kept(Blobs::MOST);
        assert_eq!((&large.status, large.answer), (&RunStatus::Finished(reason.clone()), None));
        assert!(large.error.is_some_and(|error| error.contains("read them in its session")));
    }
}
