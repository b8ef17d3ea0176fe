//! `a2a`: an agent elsewhere as a tool.

use std::{collections::BTreeMap, sync::Arc};

use agent_core::{Result, Tool};
use agent_tools::{ToolExt, ToolSet, Workspace, peers::A2aAgent};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::config::{
    file::{FilePath, SecretText, seconds},
    parts::change::Permission,
};

/// An agent elsewhere that speaks Agent2Agent, as a tool that tells it something and gives its answer.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct A2aConfig {
    /// The tool's name. Default: `a2a`.
    #[serde(default = "name")]
    name: String,
    /// Description for the model. Default: a generic description.
    #[serde(default)]
    description: Option<String>,
    /// The address below which the agent's card is.
    url: String,
    /// The token that it wants.
    #[serde(default)]
    bearer: Option<SecretText>,
    /// Headers of each request.
    #[serde(default)]
    headers: BTreeMap<String, String>,
    /// Addresses of private networks at which it may be.
    #[serde(default)]
    allow_private: Vec<String>,
    /// Seconds that a call may take.
    #[serde(default)]
    #[schemars(range(min = 0.001))]
    timeout: Option<f64>,
    /// Seconds that one request may take, and that a stream may be silent. Default: 60.
    #[serde(default)]
    #[schemars(range(min = 0.001))]
    patience: Option<f64>,
    /// Seconds between two looks at a task that cannot be followed as a stream. Default: 2.
    #[serde(default)]
    #[schemars(range(min = 0.001))]
    poll_every: Option<f64>,
    /// Most bytes of an answer. Default: 4 MiB.
    #[serde(default)]
    max_bytes: Option<usize>,
    /// The folder whose files a call may hand over. Default: none.
    #[serde(default)]
    workspace: Option<FilePath>,
    /// Processes a message with the same id once, so that a call is repeated after a crash. Default: false.
    #[serde(default)]
    deduplicates: bool,
    /// Permission of calls (allow, ask, deny): a rule of the middleware `approval`.
    #[serde(default)]
    #[allow(dead_code, reason = "it became a rule before")]
    permission: Option<Permission>,
}

fn name() -> String {
    "a2a".to_owned()
}

pub(super) fn tools(config: A2aConfig) -> Result<ToolSet> {
    let mut agent = A2aAgent::builder(config.url).name(&config.name);
    if let Some(SecretText(token)) = config.bearer {
        agent = agent.bearer(token);
    }
    for (name, value) in config.headers {
        agent = agent.header(name, value);
    }
    for address in config.allow_private {
        agent = agent.allow_private(address);
    }
    if let Some(time) = config.timeout {
        agent = agent.timeout(seconds(time)?);
    }
    if let Some(time) = config.patience {
        agent = agent.patience(seconds(time)?);
    }
    if let Some(time) = config.poll_every {
        agent = agent.poll_every(seconds(time)?);
    }
    if let Some(most) = config.max_bytes {
        agent = agent.max_bytes(most);
    }
    if let Some(FilePath(folder)) = config.workspace {
        agent = agent.workspace(Workspace::open(folder)?);
    }
    if config.deduplicates {
        agent = agent.deduplicates();
    }
    let agent = agent.build()?;
    let tool: Arc<dyn Tool> = match config.description {
        Some(description) => Arc::new(agent.described(description)),
        None => Arc::new(agent),
    };
    Ok(ToolSet::new(config.name).shared(tool))
}
