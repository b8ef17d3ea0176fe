//! Drives a job to the end of its run: `begin`, the loop (`turn_loop`, with `model` and `batch`),
//! `end`.

mod answer;
mod background;
mod batch;
mod begin;
mod call;
mod children;
mod close_turn;
mod cooperative;
mod deadline;
mod end;
mod exit_tools;
mod guard;
mod model;
mod schedule;
mod turn_loop;

use std::{fmt, pin::pin, sync::Arc};

use agent_core::{
    Deadlines, Error, ErrorKind, EventKind, ExitReason, Message, ModelInfo, ModelParams, ModelService, Result, RunCx,
    RunEnd, StateSchema, SystemMessage,
    engine::{Hook, RunDriver},
    journal::{EntryBody, RunStatus},
    middleware::Middlewares,
    run::ToolChoices,
};

use self::{
    background::with_background_tasks,
    children::reconcile_children,
    deadline::Deadline,
    exit_tools::ExitTools,
    guard::{Grace, guarded},
};
use crate::engine::Opened;
use crate::{
    lifecycle::Lifecycle,
    stack::{ToolEntry, ToolTable, Tools, caught, table},
};

/// Drives runs. Holds the composed stacks and the limits, but no state of any run.
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

/// Limits of a run.
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

/// One run to drive.
pub(crate) struct Job<'a> {
    pub(crate) driver: RunDriver,
    /// Resources to open before the first call; `None` in a replay.
    pub(crate) lifecycle: Option<&'a Lifecycle>,
    /// The rendered system prompt, if the agent has a template for it.
    pub(crate) system: Option<Result<String>>,
    pub(crate) messages: Vec<Message>,
    pub(crate) resumed: bool,
    pub(crate) stream: bool,
    pub(crate) params: Arc<ModelParams>,
    pub(crate) tools: ToolChoices,
    /// The tools that the run offers.
    pub(crate) table: ToolTable,
}

/// A running run.
struct Active<'a> {
    executor: &'a Executor,
    driver: RunDriver,
    system: Option<SystemMessage>,
    list: Middlewares,
    table: ToolTable,
    exit_tools: ExitTools,
    resumed: bool,
    stream: bool,
    params: Arc<ModelParams>,
    batches: u64,
    /// The last text before messages to which no model has replied yet.
    unanswered: Option<String>,
    /// Deadline of the current step.
    step_deadline: Option<Deadline>,
}

/// Why the loop stopped.
enum Stop {
    Finished(ExitReason, String),
    Interrupted,
    Paused,
    Cancelled,
}

impl Executor {
    /// Returns the tools that a run with these choices offers.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) if the agent cannot offer them.
    pub(crate) fn table(&self, choices: &ToolChoices, schema: &StateSchema) -> Result<ToolTable> {
        ToolTable::new(&self.tools, &self.model_info, choices, schema)
    }

    /// Runs a job to its end: `before_agent`, the loop, and always `after_agent`.
    pub(crate) async fn execute(&self, job: Job<'_>) -> Result<RunEnd> {
        let cx = job.driver.cx().clone();
        with_background_tasks(&cx, pin!(self.execute_alone(job))).await
    }

    async fn execute_alone(&self, job: Job<'_>) -> Result<RunEnd> {
        let cx = job.driver.cx().clone();
        let list = cx.engine().effective_middlewares(&self.middlewares);
        let mut entered = 0;
        let mut end = caught("the run", pin!(self.drive(job, &list, &mut entered))).await;
        let failure = end.as_ref().err().map(ToString::to_string);
        let mut grace = Grace::new(&cx);
        for (i, m) in list[..entered].iter().enumerate().rev() {
            let at = cx.engine().in_hook(Hook::AfterAgent, i);
            let hook = grace.limit(m.after_agent(&at, &mut end));
            match cx.engine().run_hook(&**m, hook).await {
                // The run ends as the caller asked, without the rest of the hook.
                Err(e) if e.kind() == ErrorKind::Cancelled && matches!(end, Ok(RunEnd::Cancelled(_))) => {
                    cx.emit(EventKind::Warning { message: e.to_string() });
                }
                Err(e) => end = Err(instead_of(&end, e)),
                Ok(()) => {}
            }
            reconcile_children(&cx, &mut end);
        }
        self.settle(&cx, grace, end, failure).await
    }

    /// Runs `before_agent`, the loop, and the remaining work of the run. Counts the middlewares
    /// that were entered.
    async fn drive(&self, job: Job<'_>, list: &Middlewares, entered: &mut usize) -> Result<RunEnd> {
        let mut active = Active {
            executor: self,
            exit_tools: ExitTools::new(self.exit_on.clone()),
            driver: job.driver,
            system: self.system.clone(),
            list: list.clone(),
            table: job.table,
            unanswered: None,
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

    /// Records how the run ended. A `failure` is recorded even if a hook turned it into an answer.
    async fn settle(
        &self,
        cx: &RunCx,
        mut grace: Grace<'_>,
        mut end: Result<RunEnd>,
        failure: Option<String>,
    ) -> Result<RunEnd> {
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
        let written = caught("the journal", pin!(grace.limit(cx.engine().log().commit()))).await;
        reconcile_children(cx, &mut end); // leftover children write nothing after this point
        cx.engine().log().close();
        match written {
            Err(e) if end.is_ok() => Err(instead_of(&end, e)),
            _ => end,
        }
    }
}

/// Returns the error that replaces `end`, with the checkpoint of `end`.
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

    /// Waits until all entries recorded so far are durable.
    async fn commit(&self) -> Result<()> {
        guarded(self.cx(), "the journal", self.cx().engine().log().commit()).await
    }
}

impl fmt::Debug for Executor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Executor").field("limits", &self.limits).finish_non_exhaustive()
    }
}
