//! `served`: an agent that is served elsewhere as a tool.

use std::sync::Arc;

use agent_core::{Result, Tool};
use agent_tools::{RemoteAgent, ToolExt, ToolSet};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::config::{file::seconds, parts::change::Permission};

/// An agent that is served elsewhere, as a tool that tells it something and gives its answer: for an engine that sends runs elsewhere.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ServedConfig {
    /// The tool's name. Default: `served`.
    #[serde(default = "name")]
    name: String,
    /// Description for the model. Default: a generic description.
    #[serde(default)]
    description: Option<String>,
    /// The name under which the agent is served. Default: the tool's name.
    #[serde(default)]
    agent: Option<String>,
    /// The engine's name of the service that has it. Default: the one that has this agent.
    #[serde(default)]
    service: Option<String>,
    /// Seconds that a call waits. Default: for ever.
    #[serde(default)]
    #[schemars(range(min = 0.001))]
    timeout: Option<f64>,
    /// Maximum depth of runs that call one another in this way. Default: 5.
    #[serde(default)]
    max_depth: Option<u32>,
    /// Permission of calls (allow, ask, deny): a rule of the middleware `approval`.
    #[serde(default)]
    #[allow(dead_code, reason = "it became a rule before")]
    permission: Option<Permission>,
}

fn name() -> String {
    "served".to_owned()
}

pub(super) fn tools(config: ServedConfig) -> Result<ToolSet> {
    let mut agent = RemoteAgent::new(config.agent.unwrap_or_else(|| config.name.clone()));
    if let Some(service) = config.service {
        agent = agent.service(service);
    }
    if let Some(time) = config.timeout {
        agent = agent.timeout(seconds(time)?);
    }
    if let Some(depth) = config.max_depth {
        agent = agent.max_depth(depth);
    }
    let agent = agent.named(&config.name);
    let tool: Arc<dyn Tool> = match config.description {
        Some(description) => Arc::new(agent.described(description)),
        None => Arc::new(agent),
    };
    Ok(ToolSet::new(config.name).shared(tool))
}
