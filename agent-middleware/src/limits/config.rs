//! Configuration of [`Limits`](super::Limits).

use std::{collections::BTreeMap, time::Duration};

use serde::{Deserialize, Serialize};

/// Action when a run reaches a limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum OnLimit {
    /// The run finishes at its next boundary, and its exit reason names the limit.
    #[default]
    End,
    /// The run fails with [`ErrorKind::Limit`](agent_core::ErrorKind::Limit).
    Error,
}

/// Action for a tool call over the limit, which never runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum OnToolLimit {
    /// The call is answered with an error that states the limit, and the run continues.
    #[default]
    Continue,
    /// The call is answered in the same way, and the run finishes at its next boundary.
    End,
    /// The run fails with [`ErrorKind::Limit`](agent_core::ErrorKind::Limit).
    Error,
}

/// Limits of a run. Unset limits are unlimited; if no limit is set, a run has at most 50 model calls.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct LimitsConfig {
    /// Maximum number of model calls; retries of a call do not count. Default: 50 if no other limit
    /// is set.
    pub model_calls: Option<u32>,
    /// Action at that limit. Default: [`OnLimit::End`].
    pub on_model_calls: OnLimit,
    /// Maximum number of tool calls, of all tools together.
    pub tool_calls: Option<u32>,
    /// Maximum number of calls of single tools, by name.
    pub tools: BTreeMap<String, u32>,
    /// Action for a tool call over either limit. Default: [`OnToolLimit::Continue`].
    pub on_tool_calls: OnToolLimit,
    /// Number of input and output tokens of the run and its descendants after which the model is
    /// not called again.
    pub tokens: Option<u64>,
    /// Action at that limit. Default: [`OnLimit::End`].
    pub on_tokens: OnLimit,
    /// Maximum duration; in configuration files, seconds. A run that resumes after a pause starts
    /// anew.
    #[serde(with = "agent_core::seconds")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<agent_core::seconds::Seconds>"))]
    pub wall_time: Option<Duration>,
    /// Action at that limit. Default: [`OnLimit::End`].
    pub on_wall_time: OnLimit,
}

/// Model calls of a run without any limit.
const MODEL_CALLS: u32 = 50;

impl LimitsConfig {
    /// Most model calls.
    pub(super) fn most_model_calls(&self) -> Option<u32> {
        let Self { model_calls, tool_calls, tools, tokens, wall_time, .. } = self;
        let others = tool_calls.is_some() || !tools.is_empty() || tokens.is_some() || wall_time.is_some();
        model_calls.or((!others).then_some(MODEL_CALLS))
    }
}
