//! Configuration of [`Delegation`](super::Delegation).

use serde::{Deserialize, Serialize};

/// Configuration of `Delegation`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct DelegationConfig {
    /// Name of the tool that takes the agent as a parameter, and prefix of the names of the tools
    /// that manage background sub-agents. Default: `delegate`.
    pub tool: String,
    /// Offers one tool per agent instead, named by its key. Default: false.
    pub one_tool_per_agent: bool,
    /// Shows the model the ids of its sub-agents, and lets it resume one that it called before.
    /// Default: false.
    pub recall: bool,
    /// Lets the model start a sub-agent with a copy of the conversation. Default: false.
    pub fork: bool,
    /// Lets the model continue while a sub-agent runs. Default: false.
    pub background: bool,
    /// Makes the run wait for its background sub-agents before it finishes; otherwise they are
    /// cancelled at its end. Default: true.
    pub wait_at_end: bool,
    /// Maximum nesting depth of agents: with 1, the root can call agents, which cannot call any.
    /// Default: 5.
    pub max_depth: u32,
    /// Maximum number of concurrent sub-agents of one run, at least 1; further calls wait, and
    /// further background sub-agents are refused. `None` is unlimited. Default: 5.
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
