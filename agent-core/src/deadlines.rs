//! Deadlines of runs, steps and calls.

use std::{
    collections::BTreeMap,
    fmt,
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize};

use crate::{
    error::{Error, ErrorKind, Retry},
    state::ExitReason,
};

/// Time limits on the parts of a run. Unset fields are unlimited, which is the default for all: a
/// model over HTTP has its own read timeouts, and only the application knows how long a tool or a
/// run may take. In configuration files, all values are in seconds.
///
/// ```
/// use std::time::Duration;
///
/// use agent_core::Deadlines;
///
/// let secs = Duration::from_secs;
/// let deadlines = Deadlines::new().run(secs(600)).first_chunk(secs(30)).tool(secs(60)).tool_named("build", secs(300));
/// assert_eq!(deadlines.of_tool("build", None), Some(secs(300)));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Deadlines {
    /// Limit for a run with all its descendants, in seconds. When it passes, running calls are
    /// aborted and answered, and the run ends with [`ExitReason::Deadline`]. The remaining work,
    /// `after_agent` and the last commit, has five more seconds.
    #[serde(with = "crate::seconds")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<crate::seconds::Seconds>"))]
    pub run: Option<Duration>,
    /// Limit for one step, in seconds: its model call, including retries, and its tool calls. A
    /// late model call fails the run with [`ErrorKind::Timeout`]; late tool calls are answered with
    /// an error.
    #[serde(with = "crate::seconds")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<crate::seconds::Seconds>"))]
    pub step: Option<Duration>,
    /// Limit until the first chunk of a streamed answer, in seconds, for each attempt of a model
    /// call.
    #[serde(with = "crate::seconds")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<crate::seconds::Seconds>"))]
    pub first_chunk: Option<Duration>,
    /// Limit between two chunks of a streamed answer, in seconds.
    #[serde(with = "crate::seconds")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<crate::seconds::Seconds>"))]
    pub chunk_gap: Option<Duration>,
    /// Limit for one attempt at a tool call, in seconds. The tool's own
    /// [`timeout`](crate::ToolOptions::timeout) takes precedence.
    #[serde(with = "crate::seconds")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<crate::seconds::Seconds>"))]
    pub tool: Option<Duration>,
    /// Limit for one attempt at a call of the tool with this name, in seconds. Overrides the tool's
    /// own timeout.
    #[serde(with = "crate::seconds")]
    #[cfg_attr(feature = "schema", schemars(with = "BTreeMap<String, crate::seconds::Seconds>"))]
    pub tools: BTreeMap<String, Duration>,
}

impl Deadlines {
    /// Creates deadlines without any limit.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the limit for a run.
    #[must_use]
    pub fn run(mut self, most: Duration) -> Self {
        self.run = Some(most);
        self
    }

    /// Sets the limit for a step.
    #[must_use]
    pub fn step(mut self, most: Duration) -> Self {
        self.step = Some(most);
        self
    }

    /// Sets the limit until the first chunk of an answer.
    #[must_use]
    pub fn first_chunk(mut self, most: Duration) -> Self {
        self.first_chunk = Some(most);
        self
    }

    /// Sets the limit between two chunks.
    #[must_use]
    pub fn chunk_gap(mut self, most: Duration) -> Self {
        self.chunk_gap = Some(most);
        self
    }

    /// Sets the limit for an attempt at a tool call, for tools without their own timeout.
    #[must_use]
    pub fn tool(mut self, most: Duration) -> Self {
        self.tool = Some(most);
        self
    }

    /// Sets the limit for an attempt at a call of the tool `name`.
    #[must_use]
    pub fn tool_named(mut self, name: impl Into<String>, most: Duration) -> Self {
        self.tools.insert(name.into(), most);
        self
    }

    /// Returns the limit for an attempt at a call of the tool `name`, whose own timeout is `own`.
    pub fn of_tool(&self, name: &str, own: Option<Duration>) -> Option<Duration> {
        self.tools.get(name).copied().or(own).or(self.tool)
    }
}

/// Kind of a passed deadline: the value of the context key `deadline` of an [`ErrorKind::Timeout`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DeadlineKind {
    /// Deadline of a run.
    Run,
    /// Deadline of a step.
    Step,
    /// Deadline of the first chunk of an answer.
    FirstChunk,
    /// Deadline of the next chunk of an answer.
    ChunkGap,
    /// Deadline of a tool call.
    Tool,
}

impl DeadlineKind {
    /// Creates the error of an operation that exceeded the limit `most`; the error names the
    /// setting to change.
    pub fn passed(self, message: impl Into<String>, most: Duration) -> Error {
        let (name, change) = match self {
            Self::Run => ("run", "Deadlines::run, or the budget's wall_time"),
            Self::Step => ("step", "Deadlines::step"),
            Self::FirstChunk => ("first_chunk", "Deadlines::first_chunk"),
            Self::ChunkGap => ("chunk_gap", "Deadlines::chunk_gap"),
            Self::Tool => ("tool", "ToolOptions::timeout, Deadlines::tool or Deadlines::tool_named"),
        };
        // An attempt can be retried; a step or a run cannot.
        let retry = match self {
            Self::Run | Self::Step => Retry::Permanent,
            Self::FirstChunk | Self::ChunkGap | Self::Tool => Retry::Temporary(None),
        };
        Error::new(ErrorKind::Timeout, message.into())
            .with_retry(retry)
            .with_context("deadline", name)
            .with_context("limit", format!("{most:?}"))
            .with_context("changed by", change)
    }
}

/// Deadline of a run.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RunDeadline {
    /// Time of the deadline, on the monotonic clock of this process: a run resumed in another
    /// process gets a new deadline, from the time left.
    pub at: Instant,
    /// Total limit, over all attempts.
    pub most: Duration,
    /// Exit reason when the deadline passes.
    pub reason: ExitReason,
}

impl RunDeadline {
    /// Creates the deadline of a run that may take `most` and has already taken `elapsed`.
    pub fn new(most: Duration, elapsed: Duration, reason: ExitReason) -> Option<Self> {
        let now = tokio::time::Instant::now().into_std();
        Some(Self { at: now.checked_add(most.saturating_sub(elapsed))?, most, reason })
    }

    /// Remaining time.
    pub fn left(&self) -> Duration {
        self.at.saturating_duration_since(tokio::time::Instant::now().into_std())
    }
}

impl fmt::Debug for RunDeadline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunDeadline").field("left", &self.left()).field("reason", &self.reason).finish_non_exhaustive()
    }
}
