//! Limits of a run.
//!
//! [`Limits`] is the middleware. This module contains its configuration, and the actions at a
//! limit.
//!
//! ```
//! use agent_middleware::{Limits, limits::OnToolLimit};
//!
//! let limits = Limits::new().tool_calls(50).on_tool_calls(OnToolLimit::End);
//! # drop(limits);
//! ```

mod call_counts;
mod config;

use std::time::Duration;

use agent_core::{
    Error, ErrorKind, Flow, Middleware, ModelNext, ModelRequest, ModelResponse, PerRun, Placement, Result, Retry,
    RunCx, RunEnd, ToolNext, ToolOutput, ToolRequest, boxed,
};
use async_trait::async_trait;
use tokio::time::{Instant, timeout_at};

use self::call_counts::CallCounts;
pub use self::config::{LimitsConfig, OnLimit, OnToolLimit};
use crate::{run_value::RunValue, wrap::wrap};

const CALLS: RunValue<CallCounts> = RunValue::new("limits", "tool_calls");

/// Milliseconds that the run took before its last pause.
const SPENT: RunValue<u64> = RunValue::new("limits", "spent");

/// Limits the model calls, tool calls, tokens and duration of a run. Unset limits are unlimited; if
/// no limit is set, a run has at most 50 model calls.
///
/// A limit of N allows exactly N. Counts of model calls, tool calls and tokens continue when a run
/// resumes after a pause or a restart. So does its time, without the time that it was suspended:
/// the run is not responsible for waiting for a person. The time since its last pause is lost with
/// the process.
///
/// | limit | checked | default action |
/// |---|---|---|
/// | model calls | before a model call | the run finishes: [`OnLimit::End`] |
/// | tokens of the run and its descendants | before a model call | the run finishes: [`OnLimit::End`] |
/// | tool calls, total and per tool | before a tool call | the model receives an error: [`OnToolLimit::Continue`] |
/// | duration | before and during model and tool calls | the run finishes: [`OnLimit::End`] |
///
/// A run that finishes at a limit has the exit reason `limit: ..`. When the time is up, running
/// calls are cut off, including those of sub-agents; a cut-off tool call is answered with an error,
/// so that the conversation stays complete.
///
/// A call's tokens are known only after the call, so the last call may exceed the limit. To enforce
/// a cap across many runs, give the agent a [`Budget`](agent_core::Budget), which is reserved
/// before each call.
///
/// # Order
///
/// A call that an inner middleware answers counts; one that an outer middleware answers does not
/// reach this one.
///
/// ```text
/// // right: nobody is asked about a call over the limit, and rejected calls count too
/// builder.middleware(Limits::new().tool_calls(10)).middleware(Approval::new().ask("*"))
/// // wrong: people approve calls that are refused afterwards
/// builder.middleware(Approval::new().ask("*")).middleware(Limits::new().tool_calls(10))
/// ```
///
/// # Example
///
/// ```
/// use std::time::Duration;
///
/// use agent_middleware::{Limits, limits::OnToolLimit};
///
/// let limits = Limits::new()
///     .model_calls(20)
///     .tool("web_search", 5)
///     .on_tool_calls(OnToolLimit::End)
///     .wall_time(Duration::from_secs(120));
/// # drop(limits);
/// ```
#[derive(Debug, Default)]
pub struct Limits {
    config: LimitsConfig,
    clock: PerRun<Clock>,
}

/// Duration of a run.
#[derive(Clone, Copy, Debug)]
struct Clock {
    /// Start or last resumption of the run in this process.
    since: Instant,
    /// Duration before that, without the time that the run was suspended.
    spent: Duration,
}

impl Limits {
    /// Creates the middleware with its default, which is at most 50 model calls until a limit is set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the maximum number of model calls of a run.
    #[must_use]
    pub fn model_calls(mut self, most: u32) -> Self {
        self.config.model_calls = Some(most);
        self
    }

    /// Sets the action at the limit of model calls. Default: [`OnLimit::End`].
    #[must_use]
    pub fn on_model_calls(mut self, then: OnLimit) -> Self {
        self.config.on_model_calls = then;
        self
    }

    /// Sets the maximum number of tool calls of a run, of all tools together.
    #[must_use]
    pub fn tool_calls(mut self, most: u32) -> Self {
        self.config.tool_calls = Some(most);
        self
    }

    /// Sets the maximum number of calls of one tool in a run.
    #[must_use]
    pub fn tool(mut self, name: impl Into<String>, most: u32) -> Self {
        self.config.tools.insert(name.into(), most);
        self
    }

    /// Sets the action for a tool call over the limit. Default: [`OnToolLimit::Continue`].
    #[must_use]
    pub fn on_tool_calls(mut self, then: OnToolLimit) -> Self {
        self.config.on_tool_calls = then;
        self
    }

    /// Sets the number of tokens of the run and its descendants after which the model is not called
    /// again.
    #[must_use]
    pub fn tokens(mut self, tokens: u64) -> Self {
        self.config.tokens = Some(tokens);
        self
    }

    /// Sets the action at the limit of tokens. Default: [`OnLimit::End`].
    #[must_use]
    pub fn on_tokens(mut self, then: OnLimit) -> Self {
        self.config.on_tokens = then;
        self
    }

    /// Sets the maximum duration of a run, without the time that it is suspended.
    #[must_use]
    pub fn wall_time(mut self, time: Duration) -> Self {
        self.config.wall_time = Some(time);
        self
    }

    /// Sets the action when the time is up. Default: [`OnLimit::End`].
    #[must_use]
    pub fn on_wall_time(mut self, then: OnLimit) -> Self {
        self.config.on_wall_time = then;
        self
    }

    /// Returns the run's clock, which starts with the first call.
    fn clock(&self, cx: &RunCx) -> Clock {
        *self.clock.of(cx, || {
            // Without a stored value, and with an unreadable one, the run has just started.
            let spent = if SPENT.is_set(cx) { SPENT.update(cx, |spent| *spent).unwrap_or_default() } else { 0 };
            Clock { since: Instant::now(), spent: Duration::from_millis(spent) }
        })
    }

    /// Returns the run's deadline, if its duration is limited.
    fn deadline(&self, cx: &RunCx) -> Option<Instant> {
        let time = self.config.wall_time?;
        let Clock { since, spent } = self.clock(cx);
        since.checked_add(time.saturating_sub(spent))
    }

    fn time_is_up(&self, cx: &RunCx) -> Result<()> {
        let time = self.config.wall_time.unwrap_or_default();
        reached(cx, &format!("at most {time:?} for one run"), self.config.on_wall_time)
    }

    async fn model_call(&self, deadline: Instant, req: ModelRequest, next: ModelNext<'_>) -> Result<ModelResponse> {
        let cx = req.cx.clone();
        let Ok(answered) = timeout_at(deadline, next.run(req)).await else {
            self.time_is_up(&cx)?;
            let reason = cx.stop_requested().unwrap_or_default();
            return Err(Error::new(ErrorKind::Stopped, reason).with_retry(Retry::Permanent));
        };
        answered
    }

    async fn tool_call(&self, deadline: Instant, req: ToolRequest, next: ToolNext<'_>) -> Result<ToolOutput> {
        let cx = req.cx.clone();
        let Ok(answered) = timeout_at(deadline, next.run(req)).await else {
            self.time_is_up(&cx)?;
            return Ok(ToolOutput::error("The call was cut off: the run's time is up."));
        };
        answered
    }
}

/// Requests the run to finish, or fails it.
fn reached(cx: &RunCx, limit: &str, then: OnLimit) -> Result<()> {
    match then {
        OnLimit::End => {
            cx.stop(format!("limit: {limit}"));
            Ok(())
        }
        OnLimit::Error => Err(Error::new(ErrorKind::Limit, limit.to_owned()).with_retry(Retry::Permanent)),
    }
}

impl From<LimitsConfig> for Limits {
    fn from(config: LimitsConfig) -> Self {
        Self { config, clock: PerRun::default() }
    }
}

#[async_trait]
impl Middleware for Limits {
    fn name(&self) -> &str {
        "limits"
    }

    fn placement(&self) -> Placement {
        Placement::default().outside("approval")
    }

    async fn before_agent(&self, cx: &RunCx) -> Result<()> {
        self.deadline(cx); // starts the clock
        Ok(())
    }

    async fn after_agent(&self, cx: &RunCx, end: &mut Result<RunEnd>) -> Result<()> {
        if self.config.wall_time.is_some() && !matches!(end, Ok(RunEnd::Finished(_))) {
            let Clock { since, spent } = self.clock(cx);
            let spent = u64::try_from((spent + since.elapsed()).as_millis()).unwrap_or(u64::MAX);
            SPENT.update(cx, |before| *before = spent)?;
        }
        SPENT.end(cx, end);
        self.clock.end(cx);
        CALLS.end(cx, end);
        Ok(())
    }

    async fn before_model(&self, cx: &RunCx, _: &mut ModelRequest) -> Result<Flow<ModelResponse>> {
        let config = &self.config;
        if let Some(most) = config.most_model_calls().filter(|most| cx.step() > *most) {
            reached(cx, &format!("at most {most} model calls in one run"), config.on_model_calls)?;
        }
        if let Some(most) = config.tokens.filter(|most| cx.tree_usage().total() >= *most) {
            reached(cx, &format!("at most {most} tokens in one run and those below"), config.on_tokens)?;
        }
        if self.deadline(cx).is_some_and(|deadline| Instant::now() >= deadline) {
            self.time_is_up(cx)?;
        }
        Ok(Flow::Continue)
    }

    wrap! {
        wrap_model_call(self, req: ModelRequest, next: ModelNext) -> ModelResponse {
            match self.deadline(&req.cx) {
                Some(deadline) => boxed(|| self.model_call(deadline, req, next)),
                None => boxed(|| next.run(req)),
            }
        }
    }

    wrap! {
        wrap_tool_call(self, req: ToolRequest, next: ToolNext) -> ToolOutput {
            match self.deadline(&req.cx) {
                Some(deadline) => boxed(|| self.tool_call(deadline, req, next)),
                None => boxed(|| next.run(req)),
            }
        }
    }

    async fn before_tool(&self, cx: &RunCx, req: &mut ToolRequest) -> Result<Flow<ToolOutput>> {
        let config = &self.config;
        if config.tool_calls.is_none() && config.tools.is_empty() {
            return Ok(Flow::Continue);
        }
        let call = &req.call;
        let admitted = CALLS.update(cx, |counts| counts.admit(config, cx.step(), &call.id, &call.name))?;
        let Err(limit) = admitted else { return Ok(Flow::Continue) };
        match config.on_tool_calls {
            OnToolLimit::Continue => {}
            OnToolLimit::End => reached(cx, &limit, OnLimit::End)?,
            OnToolLimit::Error => reached(cx, &limit, OnLimit::Error)?,
        }
        Ok(Flow::Answer(ToolOutput::error(format!("Not run: {limit}. Go on with what you have."))))
    }
}
