//! What is limited, and what happens then.

use std::{collections::BTreeMap, time::Duration};

use serde::{Deserialize, Serialize};

/// What happens to a run that reached a limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum OnLimit {
    /// The run finishes at its next boundary, and its exit reason says which limit it was.
    #[default]
    End,
    /// The run fails with [`ErrorKind::Limit`](agent_core::ErrorKind::Limit).
    Error,
}

/// What happens to a tool call over the limit. It is never run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum OnToolLimit {
    /// The call is answered with an error that tells the model of the limit, and the run goes on.
    #[default]
    Continue,
    /// The call is answered in the same way, and the run finishes at its next boundary.
    End,
    /// The run fails with [`ErrorKind::Limit`](agent_core::ErrorKind::Limit).
    Error,
}

/// The limits of a run. Whatever is unset is unlimited.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct LimitsConfig {
    /// Most model calls, however often each was tried.
    pub model_calls: Option<u32>,
    /// What happens then. Default: [`OnLimit::End`].
    pub on_model_calls: OnLimit,
    /// Most tool calls, of all tools together.
    pub tool_calls: Option<u32>,
    /// Most calls of single tools, by name.
    pub tools: BTreeMap<String, u32>,
    /// What happens to a tool call over either limit. Default: [`OnToolLimit::Continue`].
    pub on_tool_calls: OnToolLimit,
    /// Tokens, in and out, of the run and its descendants, after which the model is not called again.
    pub tokens: Option<u64>,
    /// What happens then. Default: [`OnLimit::End`].
    pub on_tokens: OnLimit,
    /// Longest time; in configuration files, seconds. A run that goes on after a pause starts afresh.
    #[serde(with = "agent_core::seconds")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<agent_core::seconds::Seconds>"))]
    pub wall_time: Option<Duration>,
    /// What happens then. Default: [`OnLimit::End`].
    pub on_wall_time: OnLimit,
}
