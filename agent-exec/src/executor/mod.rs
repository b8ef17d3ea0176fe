//! The loop: model call, tool calls, repeat, stopping wherever it must.

mod batch;
mod beside;
mod call;
mod catch_up;
mod core;
mod due;
mod entry;
mod exit;
mod model;
mod model_core;
mod schedule;
mod table;
mod turns;

use std::{collections::HashMap, fmt, future::poll_fn, pin::pin, sync::Arc, task::Poll, time::Duration};

use agent_core::{
    AssistantMessage, Checkpoint, Deadlines, Durable, EntryBody, Error, ErrorKind, EventKind, Exit, ExitReason,
    Finished, History, Message, Middlewares, ModelInfo, ModelParams, ModelService, PendingTurn, Phase, Result, RunCx,
    RunDriver, RunEnd, RunStatus, StateSchema, SystemMessage, ToolChoices, ToolSpecs, Toolset,
};

use tokio::time::Instant;

use self::{
    batch::BatchEnd, beside::beside, catch_up::catch_up, due::Due, exit::Exits, table::ToolTable, turns::give_way,
};
pub(crate) use self::{core::ToolCore, entry::ToolEntry, model_core::ModelCore, table::Composed};
use crate::builder::Item;

/// Drives runs: holds the composed stacks and the limits, and no state of any run.
pub struct Executor {
    pub(crate) model: ModelService,
    pub(crate) model_info: Arc<ModelInfo>,
    /// For tools that come later: their stacks are composed as those of the agent's own.
    pub(crate) items: Arc<[Item]>,
    pub(crate) raise_tool_errors: bool,
    pub(crate) tools: Arc<HashMap<String, Arc<ToolEntry>>>,
    pub(crate) specs: ToolSpecs,
    pub(crate) toolsets: Arc<[Arc<dyn Toolset>]>,
    pub(crate) composed: Composed,
    pub(crate) middlewares: Middlewares,
    pub(crate) system: Option<SystemMessage>,
    pub(crate) params: Arc<ModelParams>,
    pub(crate) exit_on: Arc<[String]>,
    pub(crate) limits: Limits,
    pub(crate) deadlines: Arc<Deadlines>,
}

/// How far a run may go.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) steps: u32,
    pub(crate) final_answer: bool,
    pub(crate) tool_concurrency: usize,
    pub(crate) tool_output: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { steps: 100, final_answer: false, tool_concurrency: 16, tool_output: 1 << 20 }
    }
}

/// One run to be driven.
pub(crate) struct Job<'a> {
    pub(crate) driver: RunDriver,
    /// What was made of the template of the system prompt, if there is one.
    pub(crate) system: Option<Result<String>>,
    pub(crate) messages: Vec<Message>,
    pub(crate) phase: Phase,
    pub(crate) resumed: bool,
    pub(crate) stream: bool,
    pub(crate) params: Arc<ModelParams>,
    pub(crate) tools: ToolChoices,
    pub(crate) schema: &'a StateSchema,
    pub(crate) fingerprint: &'a str,
    /// For how long earlier attempts were under way.
    pub(crate) elapsed: Duration,
}

/// A run under way.
struct Active<'a> {
    executor: &'a Executor,
    driver: RunDriver,
    system: Option<SystemMessage>,
    list: Middlewares,
    table: ToolTable,
    exits: Exits,
    phase: Phase,
    resumed: bool,
    stream: bool,
    params: Arc<ModelParams>,
    fingerprint: &'a str,
    batches: u64,
    began: Instant,
    elapsed: Duration,
    /// When the step under way must be over.
    step_due: Option<Due>,
}

/// Why the loop was left.
enum Stop {
    Finished(ExitReason, String),
    Interrupted,
    Paused,
    Cancelled,
}

impl Executor {
    /// Runs a job to its end: `before_agent`, the loop, `after_agent` whatever happened.
    pub(crate) async fn execute(&self, job: Job<'_>) -> Result<RunEnd> {
        let cx = job.driver.cx().clone();
        beside(&cx, pin!(self.execute_alone(job))).await
    }

    async fn execute_alone(&self, job: Job<'_>) -> Result<RunEnd> {
        let cx = job.driver.cx().clone();
        let list = cx.covering(&self.middlewares);
        let mut entered = 0;
        let mut end = self.drive(job, &list, &mut entered).await;
        catch_up(&cx, &mut end, false).await;
        let failure = end.as_ref().err().map(ToString::to_string);
        for m in list[..entered].iter().rev() {
            let result = m.after_agent(&cx, &mut end).await;
            if let Err(e) = cx.judge(&**m, result) {
                end = Err(instead_of(&end, e));
            }
        }
        self.settle(&cx, end, failure).await
    }

    /// `before_agent`, the loop, and what is left of the run after it. Counts the middlewares that entered.
    async fn drive(&self, job: Job<'_>, list: &Middlewares, entered: &mut usize) -> Result<RunEnd> {
        let table = ToolTable::new(self, &job.tools, job.schema)?;
        let mut active = Active {
            executor: self,
            exits: Exits::new(self.exit_on.clone()),
            driver: job.driver,
            system: self.system.clone(),
            list: list.clone(),
            table,
            phase: job.phase,
            resumed: job.resumed,
            stream: job.stream,
            params: job.params,
            fingerprint: job.fingerprint,
            batches: 0,
            began: Instant::now(),
            elapsed: job.elapsed,
            step_due: Due::of_step(&self.deadlines),
        };
        let stop = match active.begin(job.system, job.messages, entered).await {
            Ok(()) => active.turn_loop().await,
            Err(e) => Err(e),
        };
        active.end(stop)
    }

    /// Writes down how the run ended. A `failure` is told even if a hook made an answer of it.
    async fn settle(&self, cx: &RunCx, mut end: Result<RunEnd>, failure: Option<String>) -> Result<RunEnd> {
        let (status, error) = match &end {
            Ok(RunEnd::Finished(f)) => (RunStatus::Finished(f.reason.clone()), None),
            Ok(RunEnd::Interrupted(c)) => {
                c.questions.iter().for_each(|q| cx.log().record(EntryBody::Asked { question: q.clone().into() }));
                (RunStatus::Interrupted, None)
            }
            Ok(RunEnd::Paused(_)) => (RunStatus::Paused, None),
            Ok(_) => (RunStatus::Cancelled, None),
            Err(e) => (RunStatus::Failed, Some(e.to_string())),
        };
        let answer = match &end {
            Ok(RunEnd::Finished(finished)) if cx.ids().depth > 0 => Some(finished.answer.as_str().into()),
            _ => None,
        };
        let (usage, error) = (cx.usage().into(), error.or(failure).map(Into::into));
        cx.log().record(EntryBody::RunEnded { status, usage, error, answer });
        let written = cx.log().commit().await;
        if written.is_ok() {
            catch_up(cx, &mut end, true).await;
        }
        cx.log().close();
        match written {
            Err(e) if end.is_ok() => Err(instead_of(&end, e)),
            _ => end,
        }
    }
}

/// What `work` gives, unless the run is cancelled before it is done: then it is dropped. For work of the loop itself, which is
/// [polled](beside()) when that happens.
async fn unless_cancelled<T>(cx: &RunCx, work: impl Future<Output = Result<T>>) -> Result<T> {
    let mut work = pin!(work);
    poll_fn(|context| match work.as_mut().poll(context) {
        Poll::Pending if cx.cancellation().is_cancelled() => {
            Poll::Ready(Err(Error::new(ErrorKind::Cancelled, "the run was cancelled")))
        }
        polled => polled,
    })
    .await
}

/// The error that takes the place of `end`, with where the run stood.
fn instead_of(end: &Result<RunEnd>, e: Error) -> Error {
    let checkpoint = match end {
        Ok(end) => end.checkpoint(),
        Err(earlier) => earlier.checkpoint(),
    };
    match checkpoint {
        Some(checkpoint) => e.with_checkpoint(checkpoint.clone()),
        None => e,
    }
}

impl Active<'_> {
    fn cx(&self) -> &RunCx {
        self.driver.cx()
    }

    /// Takes the new messages into the history, mended where they are unpaired, and enters the middlewares.
    async fn begin(
        &mut self,
        system: Option<Result<String>>,
        messages: Vec<Message>,
        entered: &mut usize,
    ) -> Result<()> {
        let cx = self.cx().clone();
        let (new, repairs) = History::import(messages);
        let mut new = new.iter().cloned().peekable();
        while let Some(message) = new.next() {
            match message {
                Message::Assistant(m) if m.has_calls() => {
                    let results = std::iter::from_fn(|| new.next_if(|m| m.as_tool().is_some()));
                    let results = results.filter_map(|m| m.as_tool().cloned()).collect();
                    self.adopt_turn(m, results)?;
                }
                other => self.driver.push(other)?,
            }
        }
        self.set_system(system).await?;
        self.driver.keep_steering(); // after the messages of the request, which are not steering
        let hooks = async {
            for m in self.list.iter() {
                cx.judge(&**m, m.before_agent(&cx).await)?;
                *entered += 1;
            }
            Ok(())
        };
        unless_cancelled(&cx, hooks).await?;
        self.driver.enter();
        cx.log().commit().await?;
        for repair in repairs {
            cx.emit(EventKind::Warning { message: format!("the messages of the request were repaired: {repair:?}") });
        }
        if cx.history().iter().all(|message| matches!(message, Message::System(_))) {
            let message = "nobody but the system says anything: the model is asked all the same".into();
            cx.emit(EventKind::Warning { message });
        }
        Ok(())
    }

    async fn turn_loop(&mut self) -> Result<Stop> {
        loop {
            if self.cx().cancellation().is_cancelled() {
                return Ok(Stop::Cancelled);
            }
            if self.cx().pause_requested() {
                return Ok(Stop::Paused);
            }
            let stop = match std::mem::take(&mut self.phase) {
                Phase::BeforeModel => self.model_phase().await?,
                Phase::Tools(turn) => self.tools_phase(turn).await?,
                Phase::Exit(exit) => self.exit(exit).await?,
                Phase::Ended(exit) => Some(Stop::Finished(exit.reason, exit.answer)),
                _ => return Err(Error::config("this release does not know the checkpoint's phase")),
            };
            self.resumed = false;
            if let Some(stop) = stop {
                return Ok(stop);
            }
            give_way().await;
        }
    }

    /// One step's model call and what follows from its answer.
    async fn model_phase(&mut self) -> Result<Option<Stop>> {
        self.steer_as_recorded()?;
        for message in self.driver.take_steering() {
            self.driver.push(message)?;
        }
        if self.cx().step() >= self.executor.limits.steps {
            return self.step_limit().await.map(Some);
        }
        if let Some(reason) = self.cx().stop_requested() {
            return Ok(Some(self.finished(ExitReason::Stopped(reason))));
        }
        if let Some(deadline) = self.cx().deadline().filter(|deadline| deadline.left().is_zero()) {
            return Ok(Some(self.finished(deadline.reason.clone())));
        }
        let cx = self.driver.cx();
        unless_cancelled(cx, self.table.refresh(self.executor, cx)).await?;
        cx.log().commit().await?;
        let step = self.driver.next_step();
        self.step_due = Due::of_step(&self.executor.deadlines);
        self.cx().emit(EventKind::StepStarted { step });
        let specs = self.table.specs().clone();
        let response = match self.call_model(specs).await {
            Ok(response) => response,
            Err(stop) => return self.not_answered(stop),
        };
        self.accept(step, response).await
    }

    /// In a replay: what steered the recorded run after this step, unless a hook said it again.
    fn steer_as_recorded(&self) -> Result<()> {
        let messages = self.cx().log().replayed_messages(self.cx().step());
        if messages.is_empty() || self.driver.has_steering() {
            return Ok(());
        }
        messages.into_iter().try_for_each(|message| self.cx().steer(message))
    }

    /// A model call without an answer: the step did not happen.
    fn not_answered(&self, error: Error) -> Result<Option<Stop>> {
        self.driver.undo_step();
        match error.kind() {
            ErrorKind::Interrupted => Ok(Some(Stop::Interrupted)),
            ErrorKind::Cancelled if self.cx().cancellation().is_cancelled() => Ok(Some(Stop::Cancelled)),
            ErrorKind::Stopped => Ok(Some(self.finished(ExitReason::Stopped(error.message().to_owned())))),
            ErrorKind::Timeout if error.context("deadline") == Some("run") => {
                let reason = self.cx().deadline().map_or(ExitReason::Deadline, |deadline| deadline.reason.clone());
                Ok(Some(self.finished(reason)))
            }
            ErrorKind::Limit if error.context("budget").is_some() => Ok(Some(self.finished(ExitReason::Budget))),
            _ => Err(error),
        }
    }

    /// The step limit is reached: the run ends, after one more answer without tools if that is wanted.
    async fn step_limit(&mut self) -> Result<Stop> {
        let limit = self.executor.limits.steps;
        let message = format!("the step limit of {limit} is reached");
        self.cx().emit(EventKind::Warning { message });
        if self.executor.limits.final_answer && !self.cx().history().is_empty() {
            let step = self.driver.next_step();
            self.step_due = Due::of_step(&self.executor.deadlines);
            match self.call_model(ToolSpecs::default()).await {
                Ok(mut response) => {
                    response.message = model::without_calls(response.message);
                    let exit = Exit::new(ExitReason::StepLimit, response.message.text());
                    self.cx().log().record_accepted(step, &response.message, Some(exit));
                    if !response.message.is_empty() {
                        self.driver.push_answer(response.message)?;
                    }
                }
                Err(e) => {
                    if let Some(stop) = self.not_answered(e)? {
                        return Ok(stop);
                    }
                }
            }
        }
        Ok(self.finished(ExitReason::StepLimit))
    }

    /// Runs what is left of a turn's calls and brings the turn into the history.
    async fn tools_phase(&mut self, mut turn: PendingTurn) -> Result<Option<Stop>> {
        if self.table.is_stale() {
            self.table.refresh(self.executor, self.driver.cx()).await?;
        }
        let ended = self.run_batch(&mut turn).await;
        let stop = match ended {
            Ok(BatchEnd::Answered) => return self.end_turn(turn).await,
            Ok(BatchEnd::Suspended) => Ok(Some(Stop::Interrupted)),
            Ok(BatchEnd::Paused) => Ok(Some(Stop::Paused)),
            Ok(BatchEnd::Cancelled) => Ok(Some(Stop::Cancelled)),
            Err(e) => Err(e),
        };
        self.phase = Phase::Tools(turn);
        stop
    }

    /// The end of the run with this reason, and the last text there was.
    fn finished(&self, reason: ExitReason) -> Stop {
        Stop::Finished(reason, self.last_text())
    }

    /// The last text since the user spoke: what was said before answered something else.
    fn last_text(&self) -> String {
        let history = self.cx().history();
        let since = history.iter().rev().take_while(|m| !matches!(m, Message::User(_)));
        let last = since.filter_map(Message::as_assistant).find(|m| m.has_text());
        last.map(AssistantMessage::text).unwrap_or_default()
    }

    fn end(mut self, stop: Result<Stop>) -> Result<RunEnd> {
        match stop {
            Ok(Stop::Finished(reason, answer)) => {
                // Whatever ended the run left no time for them: they are there for the next one.
                self.driver.close_steering().into_iter().try_for_each(|message| self.driver.push(message))?;
                Ok(RunEnd::Finished(Box::new(self.finish(reason, answer))))
            }
            Ok(Stop::Interrupted) => Ok(RunEnd::Interrupted(self.checkpoint())),
            Ok(Stop::Paused) => Ok(RunEnd::Paused(self.checkpoint())),
            Ok(Stop::Cancelled) => Ok(RunEnd::Cancelled(self.checkpoint())),
            // What the run waited for paused with it.
            Err(e)
                if e.kind() == ErrorKind::Interrupted
                    && self.cx().pause_requested()
                    && !self.driver.has_questions() =>
            {
                Ok(RunEnd::Paused(self.checkpoint()))
            }
            Err(e) if e.kind() == ErrorKind::Interrupted => Ok(RunEnd::Interrupted(self.checkpoint())),
            Err(e) if e.kind() == ErrorKind::Cancelled && self.cx().cancellation().is_cancelled() => {
                Ok(RunEnd::Cancelled(self.checkpoint()))
            }
            Err(e) => {
                let checkpoint = self.checkpoint();
                Err(e.with_checkpoint(*checkpoint))
            }
        }
    }

    fn finish(&self, reason: ExitReason, answer: String) -> Finished {
        let cx = self.cx();
        let mut finished = Finished::new((**cx.ids()).clone(), answer, reason, cx.history());
        finished.steps = cx.step();
        finished.usage = cx.usage();
        finished.tree_usage = cx.tree_usage();
        finished.tool_calls = cx.tool_calls();
        finished.state = cx.state().snapshot();
        finished
    }

    fn checkpoint(&mut self) -> Box<Checkpoint> {
        let cx = self.driver.cx();
        let mut c = Checkpoint::new((**cx.ids()).clone(), self.fingerprint);
        c.attempt = Some(cx.log().attempt().into());
        c.step = cx.step();
        c.history = cx.history();
        c.state = cx.state().kept();
        c.globals = (cx.ids().depth == 0).then(|| cx.globals().kept());
        c.questions = self.driver.take_questions();
        c.answers = self.driver.answers();
        c.steering = self.driver.close_steering();
        c.decisions = cx.log().decisions();
        c.usage = cx.usage();
        c.tree_usage = cx.tree_usage();
        c.phase = std::mem::take(&mut self.phase);
        c.tool_calls = cx.tool_calls();
        c.spent = cx.budget().spent();
        c.elapsed_ms = u64::try_from((self.elapsed + self.began.elapsed()).as_millis()).unwrap_or(u64::MAX);
        c.sub_agents = cx.sub_agents_started();
        c.background = cx.take_background(|_| true);
        if let Phase::Tools(turn) = &c.phase {
            c.tool_calls = cx.log().tool_calls_but(turn.open_calls());
            c.finished = cx.log().finished_tools(turn.open_calls());
            c.begun = cx.log().begun_tools(turn.open_calls());
        } else {
            c.answered = cx.log().answered();
        }
        Box::new(c)
    }
}

impl fmt::Debug for Executor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Executor").field("limits", &self.limits).finish_non_exhaustive()
    }
}
