//! How long things may take.

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

/// How long the parts of a run may take. Unset is unlimited, which is the default for all of them: a model over HTTP has
/// limits of its own for its silences, and how long a tool or a run may take only its application knows. In configuration
/// files, all are numbers of seconds.
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
    /// A run with all its descendants, in seconds. When the time is up, what is under way is cut off and answered, and the run ends
    /// with [`ExitReason::Deadline`]. What is left to do then, `after_agent` and the last commit, has five seconds more.
    #[serde(with = "crate::seconds")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<crate::seconds::Seconds>"))]
    pub run: Option<Duration>,
    /// One step, in seconds: its model call, however often that is tried, and its tool calls. A model call that is too late fails the
    /// run with [`ErrorKind::Timeout`]; tool calls are answered with an error.
    #[serde(with = "crate::seconds")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<crate::seconds::Seconds>"))]
    pub step: Option<Duration>,
    /// Until the first chunk of an answer that is streamed, in seconds: each attempt of a model call.
    #[serde(with = "crate::seconds")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<crate::seconds::Seconds>"))]
    pub first_chunk: Option<Duration>,
    /// Between two chunks of an answer that is streamed, in seconds.
    #[serde(with = "crate::seconds")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<crate::seconds::Seconds>"))]
    pub chunk_gap: Option<Duration>,
    /// One attempt at a tool call, in seconds, unless the tool's own [`timeout`](crate::ToolOptions::timeout) says otherwise.
    #[serde(with = "crate::seconds")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<crate::seconds::Seconds>"))]
    pub tool: Option<Duration>,
    /// One attempt at a call of the tool with this name, in seconds, whatever the tool says itself.
    #[serde(with = "crate::seconds")]
    #[cfg_attr(feature = "schema", schemars(with = "BTreeMap<String, crate::seconds::Seconds>"))]
    pub tools: BTreeMap<String, Duration>,
}

impl Deadlines {
    /// None yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets how long a run may take.
    #[must_use]
    pub fn run(mut self, most: Duration) -> Self {
        self.run = Some(most);
        self
    }

    /// Sets how long a step may take.
    #[must_use]
    pub fn step(mut self, most: Duration) -> Self {
        self.step = Some(most);
        self
    }

    /// Sets how long the first chunk of an answer may take.
    #[must_use]
    pub fn first_chunk(mut self, most: Duration) -> Self {
        self.first_chunk = Some(most);
        self
    }

    /// Sets how long each further chunk may take.
    #[must_use]
    pub fn chunk_gap(mut self, most: Duration) -> Self {
        self.chunk_gap = Some(most);
        self
    }

    /// Sets how long an attempt at a tool call may take, of a tool that does not say so itself.
    #[must_use]
    pub fn tool(mut self, most: Duration) -> Self {
        self.tool = Some(most);
        self
    }

    /// Sets how long an attempt at a call of the tool `name` may take.
    #[must_use]
    pub fn tool_named(mut self, name: impl Into<String>, most: Duration) -> Self {
        self.tools.insert(name.into(), most);
        self
    }

    /// How long an attempt at a call of the tool `name` may take, whose own options say `own`.
    pub fn of_tool(&self, name: &str, own: Option<Duration>) -> Option<Duration> {
        self.tools.get(name).copied().or(own).or(self.tool)
    }
}

/// Which deadline has passed: the value of the context key `deadline` of an [`ErrorKind::Timeout`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DeadlineKind {
    /// A run's.
    Run,
    /// A step's.
    Step,
    /// That of the first chunk of an answer.
    FirstChunk,
    /// That of the next chunk of an answer.
    ChunkGap,
    /// A tool's.
    Tool,
}

impl DeadlineKind {
    /// The error of who took longer than `most`; it says how to change that.
    pub fn passed(self, message: impl Into<String>, most: Duration) -> Error {
        let (name, change) = match self {
            Self::Run => ("run", "Deadlines::run, or the budget's wall_time"),
            Self::Step => ("step", "Deadlines::step"),
            Self::FirstChunk => ("first_chunk", "Deadlines::first_chunk"),
            Self::ChunkGap => ("chunk_gap", "Deadlines::chunk_gap"),
            Self::Tool => ("tool", "ToolOptions::timeout, Deadlines::tool or Deadlines::tool_named"),
        };
        // An attempt may go better the next time; a step or a run has no next time.
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

/// When a run must be over.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RunDeadline {
    /// The moment. It is of the process's own clock: a run that goes on elsewhere gets a new one, from the time left.
    pub at: Instant,
    /// How long it had, over all its attempts.
    pub most: Duration,
    /// The exit reason then.
    pub reason: ExitReason,
}

impl RunDeadline {
    /// A run that may take `most`, of which it has used `elapsed`.
    pub fn new(most: Duration, elapsed: Duration, reason: ExitReason) -> Option<Self> {
        let now = tokio::time::Instant::now().into_std();
        Some(Self { at: now.checked_add(most.saturating_sub(elapsed))?, most, reason })
    }

    /// How much time is left.
    pub fn left(&self) -> Duration {
        self.at.saturating_duration_since(tokio::time::Instant::now().into_std())
    }
}

impl fmt::Debug for RunDeadline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunDeadline").field("left", &self.left()).field("reason", &self.reason).finish_non_exhaustive()
    }
}
