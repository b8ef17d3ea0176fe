//! The loop: model call, tool calls, repeat, stopping wherever it must.

mod background;
mod batch;
mod call;
mod children;
mod cooperative;
mod deadline;
mod end;
mod exit_tools;
mod guard;
mod model;
mod schedule;

use std::{fmt, pin::pin, sync::Arc};

use agent_core::{
    Deadlines, Error, ErrorKind, EventKind, Exit, ExitReason, History, Message, ModelInfo, ModelParams, ModelService,
    Result, RunCx, RunEnd, StateSchema, SystemMessage, ToolSpecs,
    engine::RunDriver,
    journal::{EntryBody, RunStatus},
    middleware::Middlewares,
    run::{
        ToolChoices,
        checkpoint::{PendingTurn, Phase},
    },
};

use self::{
    background::with_background_tasks,
    batch::BatchEnd,
    children::reconcile_children,
    cooperative::yield_now,
    deadline::Deadline,
    exit_tools::ExitTools,
    guard::{guarded, in_grace},
};
use crate::engine::Opened;
use crate::{
    lifecycle::Lifecycle,
    stack::{ToolEntry, ToolTable, Tools, caught, table},
};

/// Drives runs: holds the composed stacks and the limits, and no state of any run.
pub struct Executor {
    pub(crate) model: ModelService,
    pub(crate) model_info: Arc<ModelInfo>,
    pub(crate) raise_tool_errors: bool,
    pub(crate) tools: Tools,
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
    /// What is opened before the first call; none in a replay.
    pub(crate) lifecycle: Option<&'a Lifecycle>,
    /// What was made of the template of the system prompt, if there is one.
    pub(crate) system: Option<Result<String>>,
    pub(crate) messages: Vec<Message>,
    pub(crate) phase: Phase,
    pub(crate) resumed: bool,
    pub(crate) stream: bool,
    pub(crate) params: Arc<ModelParams>,
    pub(crate) tools: ToolChoices,
    pub(crate) schema: &'a StateSchema,
}

/// A run under way.
struct Active<'a> {
    executor: &'a Executor,
    driver: RunDriver,
    system: Option<SystemMessage>,
    list: Middlewares,
    table: ToolTable,
    exit_tools: ExitTools,
    phase: Phase,
    resumed: bool,
    stream: bool,
    params: Arc<ModelParams>,
    batches: u64,
    /// When the step under way must be over.
    step_deadline: Option<Deadline>,
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
        with_background_tasks(&cx, pin!(self.execute_alone(job))).await
    }

    async fn execute_alone(&self, job: Job<'_>) -> Result<RunEnd> {
        let cx = job.driver.cx().clone();
        let list = cx.engine().covering(&self.middlewares);
        let mut entered = 0;
        let mut end = caught("the run", pin!(self.drive(job, &list, &mut entered))).await;
        let failure = end.as_ref().err().map(ToString::to_string);
        for m in list[..entered].iter().rev() {
            let hook = in_grace(&cx, m.after_agent(&cx, &mut end));
            if let Err(e) = cx.engine().run_hook(&**m, hook).await {
                end = Err(instead_of(&end, e));
            }
        }
        self.settle(&cx, end, failure).await
    }

    /// `before_agent`, the loop, and what is left of the run after it. Counts the middlewares that entered.
    async fn drive(&self, job: Job<'_>, list: &Middlewares, entered: &mut usize) -> Result<RunEnd> {
        let table = ToolTable::new(&self.tools, &self.model_info, &job.tools, job.schema)?;
        let mut active = Active {
            executor: self,
            exit_tools: ExitTools::new(self.exit_on.clone()),
            driver: job.driver,
            system: self.system.clone(),
            list: list.clone(),
            table,
            phase: job.phase,
            resumed: job.resumed,
            stream: job.stream,
            params: job.params,
            batches: 0,
            step_deadline: Deadline::of_step(&self.deadlines),
        };
        let cx = active.cx().clone();
        let warm_up = async {
            match job.lifecycle {
                Some(lifecycle) => lifecycle.before_run(&job.tools).await,
                None => Ok(()),
            }
        };
        let begin = active.begin(warm_up, job.system, job.messages, entered);
        let stop = match guarded(&cx, "the run's beginning", begin).await {
            Ok(()) => active.turn_loop().await,
            Err(e) => Err(e),
        };
        active.end(stop)
    }

    /// Writes down how the run ended. A `failure` is told even if a hook made an answer of it.
    async fn settle(&self, cx: &RunCx, mut end: Result<RunEnd>, failure: Option<String>) -> Result<RunEnd> {
        let (status, error) = match &end {
            Ok(RunEnd::Finished(f)) => (RunStatus::Finished(f.reason.clone()), None),
            Ok(RunEnd::Interrupted(_)) => (RunStatus::Interrupted, None),
            Ok(RunEnd::Paused(_)) => (RunStatus::Paused, None),
            Ok(_) => (RunStatus::Cancelled, None),
            Err(e) => (RunStatus::Failed, Some(e.to_string())),
        };
        let answer = match &end {
            Ok(RunEnd::Finished(finished)) if cx.ids().depth > 0 => Some(finished.answer.as_str().into()),
            _ => None,
        };
        let (usage, error) = (cx.usage().into(), error.or(failure).map(Into::into));
        cx.engine().log().record(EntryBody::RunEnded { status, usage, error, answer });
        let written = caught("the journal", in_grace(cx, cx.engine().log().commit())).await;
        reconcile_children(cx, &mut end);
        cx.engine().log().close();
        match written {
            Err(e) if end.is_ok() => Err(instead_of(&end, e)),
            _ => end,
        }
    }
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

    /// Waits until what the journal was told so far is durable.
    async fn commit(&self) -> Result<()> {
        guarded(self.cx(), "the journal", self.cx().engine().log().commit()).await
    }

    /// Takes the new messages into the history, mended where they are unpaired, opens what the run needs, and enters the
    /// middlewares.
    async fn begin(
        &mut self,
        warm_up: impl Future<Output = Result<()>>,
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
                    let results: Vec<_> = results.filter_map(|m| m.as_tool().cloned()).collect();
                    self.adopt_turn(m, &results);
                }
                other => self.driver.push(other)?,
            }
        }
        self.set_system(system).await?;
        self.driver.keep_steering(); // after the messages of the request, which are not steering
        caught("warm_up", warm_up).await?;
        for m in self.list.iter() {
            cx.engine().run_hook(&**m, m.before_agent(&cx)).await?;
            *entered += 1;
        }
        self.driver.enter();
        cx.engine().log().commit().await?;
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
            yield_now().await;
        }
    }

    /// One step's model call and what follows from its answer.
    async fn model_phase(&mut self) -> Result<Option<Stop>> {
        self.steer_as_recorded()?;
        self.take_steering().await?;
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
        guarded(cx, "a tool set", self.table.refresh(&self.executor.tools, cx)).await?;
        self.commit().await?;
        let step = self.driver.next_step();
        self.step_deadline = Deadline::of_step(&self.executor.deadlines);
        self.cx().emit(EventKind::StepStarted { step });
        let specs = self.table.specs().clone();
        let mut answered = self.call_model(specs.clone()).await;
        if let Ok(silent) = &answered
            && self.is_silent(silent)
        {
            self.take_back(silent);
            answered = self.call_model(specs).await;
        }
        match answered {
            Ok(response) => self.accept(step, response).await,
            Err(stop) => self.not_answered(stop),
        }
    }

    /// Takes the messages that wait into the history; true if there were any.
    async fn take_steering(&self) -> Result<bool> {
        let waiting = self.driver.take_steering();
        let (taken, left) = self.cx().engine().log().steering_step(self.cx().step(), waiting).await?;
        left.into_iter().try_for_each(|message| self.cx().steer(message))?;
        let is_steered = !taken.is_empty();
        taken.into_iter().try_for_each(|message| self.driver.push(message))?;
        Ok(is_steered)
    }

    /// In a replay: what steered the recorded run after this step, unless a hook said it again.
    fn steer_as_recorded(&self) -> Result<()> {
        let messages = self.cx().engine().log().replayed_messages(self.cx().step());
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
            self.step_deadline = Deadline::of_step(&self.executor.deadlines);
            match self.call_model(ToolSpecs::default()).await {
                Ok(mut response) => {
                    response.message = model::without_calls(response.message);
                    let exit = Exit::new(ExitReason::StepLimit, response.message.text());
                    self.cx().engine().log().record_accepted(step, &response.message, Some(exit));
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
            let cx = self.driver.cx();
            if let Err(e) = guarded(cx, "a tool set", self.table.refresh(&self.executor.tools, cx)).await {
                self.phase = Phase::Tools(turn);
                return Err(e);
            }
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
}

impl fmt::Debug for Executor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Executor").field("limits", &self.limits).finish_non_exhaustive()
    }
}
