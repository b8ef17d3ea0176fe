//! How a model may call other agents.

use serde::{Deserialize, Serialize};

/// How a model may call other agents.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct DelegationConfig {
    /// The name of the tool that takes the agent as a parameter. Default: `delegate`.
    pub tool: String,
    /// One tool per agent instead, named by its key. Default: false.
    pub one_tool_per_agent: bool,
    /// How deep agents may call agents: 1 lets the root call others, which cannot call any. Default: 5.
    pub max_depth: u32,
    /// Most sub-agents that one run has at once, at least 1; further calls wait. None is no limit. Default: 5.
    pub max_concurrent: Option<usize>,
}

impl Default for DelegationConfig {
    fn default() -> Self {
        Self { tool: "delegate".to_owned(), one_tool_per_agent: false, max_depth: 5, max_concurrent: Some(5) }
    }
}
