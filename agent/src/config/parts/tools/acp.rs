//! `acp`: an agent that is a program, as a tool.

use std::{collections::BTreeMap, sync::Arc};

use agent_core::{Error, Result, Tool};
use agent_tools::{Stdio, ToolExt, ToolSet, Workspace, peers::AcpAgent};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::config::{
    file::{FilePath, seconds},
    parts::change::Permission,
};

/// An agent that is a program and speaks the Agent Client Protocol, as a tool that tells it something and gives its answer. What it wants leave
/// for is asked of a person.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AcpConfig {
    /// The tool's name. Default: `acp`.
    #[serde(default = "name")]
    name: String,
    /// What the model is told of it. Default: that it passes something on.
    #[serde(default)]
    description: Option<String>,
    /// The program and its arguments.
    #[schemars(length(min = 1))]
    command: Vec<String>,
    /// Variables of the program's environment.
    #[serde(default)]
    env: BTreeMap<String, String>,
    /// Variables of this process's environment that the program is given.
    #[serde(default)]
    pass: Vec<String>,
    /// The folder in which it works. Default: that of `workspace`, or else that of this process.
    #[serde(default)]
    directory: Option<FilePath>,
    /// The folder whose files it may read and write by way of this process. Default: none.
    #[serde(default)]
    workspace: Option<FilePath>,
    /// The way in which it is logged in to.
    #[serde(default)]
    authenticate: Option<String>,
    /// Seconds that a call may take.
    #[serde(default)]
    #[schemars(range(min = 0.001))]
    timeout: Option<f64>,
    /// Seconds until it is there.
    #[serde(default)]
    #[schemars(range(min = 0.001))]
    start_timeout: Option<f64>,
    /// Whether a call runs, is asked about, or never runs: a rule of the middleware `approval`.
    #[serde(default)]
    #[allow(dead_code, reason = "it became a rule before")]
    permission: Option<Permission>,
}

fn name() -> String {
    "acp".to_owned()
}

pub(super) fn tools(config: AcpConfig) -> Result<ToolSet> {
    let [program, args @ ..] = config.command.as_slice() else {
        return Err(Error::config("an agent that is a program names it"));
    };
    let mut program = Stdio::new(program).args(args);
    for name in &config.pass {
        program = program.pass(name);
    }
    for (name, value) in &config.env {
        program = program.env(name, value);
    }
    let mut agent = AcpAgent::builder(program).name(&config.name);
    if let Some(FilePath(directory)) = config.directory {
        agent = agent.directory(directory);
    }
    if let Some(FilePath(folder)) = config.workspace {
        agent = agent.workspace(Workspace::open(folder)?);
    }
    if let Some(method) = config.authenticate {
        agent = agent.authenticate(method);
    }
    if let Some(time) = config.timeout {
        agent = agent.timeout(seconds(time)?);
    }
    if let Some(time) = config.start_timeout {
        agent = agent.start_timeout(seconds(time)?);
    }
    let agent = agent.build()?;
    let tool: Arc<dyn Tool> = match config.description {
        Some(description) => Arc::new(agent.described(description)),
        None => Arc::new(agent),
    };
    Ok(ToolSet::new(config.name).shared(tool))
}
