//! How a model may call other agents.

use serde::{Deserialize, Serialize};

/// How a model may call other agents.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct DelegationConfig {
    /// The name of the tool that takes the agent as a parameter, and the beginning of the names of those that look after
    /// sub-agents in the background. Default: `delegate`.
    pub tool: String,
    /// One tool per agent instead, named by its key. Default: false.
    pub one_tool_per_agent: bool,
    /// Whether the model is told the ids of its sub-agents, and may go on with one that it called before. Default: false.
    pub recall: bool,
    /// Whether the model may let a sub-agent begin with a copy of the conversation. Default: false.
    pub fork: bool,
    /// Whether the model may go on while a sub-agent runs. Default: false.
    pub background: bool,
    /// Whether the run does not finish while sub-agents run in the background; they are cancelled if it does. Default: true.
    pub wait_at_end: bool,
    /// How deep agents may call agents: 1 lets the root call others, which cannot call any. Default: 5.
    pub max_depth: u32,
    /// Most sub-agents that one run has at once, at least 1; further calls wait, and those in the background are refused. None
    /// is no limit. Default: 5.
    pub max_concurrent: Option<usize>,
}

impl Default for DelegationConfig {
    fn default() -> Self {
        Self {
            tool: "delegate".to_owned(),
            one_tool_per_agent: false,
            recall: false,
            fork: false,
            background: false,
            wait_at_end: true,
            max_depth: 5,
            max_concurrent: Some(5),
        }
    }
}
