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

/// An agent that is a program and speaks the Agent Client Protocol, as a tool that sends it a message and returns its answer. Permissions
/// that it requests are asked of a person.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AcpConfig {
    /// The tool's name. Default: `acp`.
    #[serde(default = "name")]
    name: String,
    /// Description for the model. Default: a generic description.
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
    /// Options of each session, by the program's ids of them: texts or truth values.
    #[serde(default)]
    options: BTreeMap<String, serde_json::Value>,
    /// Seconds that a call may take.
    #[serde(default)]
    #[schemars(range(min = 0.001))]
    timeout: Option<f64>,
    /// Seconds until it is there.
    #[serde(default)]
    #[schemars(range(min = 0.001))]
    start_timeout: Option<f64>,
    /// Seconds for which the program is kept that waits for an answer or the next message. Default: 600.
    #[serde(default)]
    #[schemars(range(min = 0.001))]
    keep: Option<f64>,
    /// Most bytes of one message of the protocol. Default: 4 MiB.
    #[serde(default)]
    max_message: Option<usize>,
    /// Most bytes of an answer. Default: 1 MiB.
    #[serde(default)]
    max_answer: Option<usize>,
    /// Declares that the agent only reads, so that a message is sent again after a crash. Default: false.
    #[serde(default)]
    repeatable: bool,
    /// Servers of tools that it starts by itself, by name: programs with their arguments.
    #[serde(default)]
    servers: BTreeMap<String, Vec<String>>,
    /// The sandbox in which it may run commands. Default: it may run none by way of this process.
    #[cfg(all(feature = "sandbox", target_os = "linux"))]
    #[serde(default)]
    terminals: Option<super::shell::Place>,
    /// Permission of calls (allow, ask, deny): a rule of the middleware `approval`.
    #[serde(default)]
    #[allow(dead_code, reason = "it became a rule before")]
    permission: Option<Permission>,
}

fn name() -> String {
    "acp".to_owned()
}

pub(super) fn tools(config: AcpConfig) -> Result<ToolSet> {
    let mut started = program(&config.command)?;
    for name in &config.pass {
        started = started.pass(name);
    }
    for (name, value) in &config.env {
        started = started.env(name, value);
    }
    let mut agent = AcpAgent::builder(started).name(&config.name);
    if let Some(FilePath(directory)) = config.directory {
        agent = agent.directory(directory);
    }
    if let Some(FilePath(folder)) = config.workspace {
        agent = agent.workspace(Workspace::open(folder)?);
    }
    if let Some(method) = config.authenticate {
        agent = agent.authenticate(method);
    }
    for (option, value) in config.options {
        agent = agent.option(option, value);
    }
    if let Some(time) = config.timeout {
        agent = agent.timeout(seconds(time)?);
    }
    if let Some(time) = config.start_timeout {
        agent = agent.start_timeout(seconds(time)?);
    }
    if let Some(time) = config.keep {
        agent = agent.keep(seconds(time)?);
    }
    if let Some(most) = config.max_message {
        agent = agent.max_message(most);
    }
    if let Some(most) = config.max_answer {
        agent = agent.max_answer(most);
    }
    if config.repeatable {
        agent = agent.repeatable();
    }
    for (name, command) in &config.servers {
        agent = agent.mcp_server(name, program(command)?);
    }
    #[cfg(all(feature = "sandbox", target_os = "linux"))]
    if let Some(place) = config.terminals {
        agent = agent.terminals(Arc::new(place.builder()?.build()?));
    }
    let agent = agent.build()?;
    let tool: Arc<dyn Tool> = match config.description {
        Some(description) => Arc::new(agent.described(description)),
        None => Arc::new(agent),
    };
    Ok(ToolSet::new(config.name).shared(tool))
}

fn program(command: &[String]) -> Result<Stdio> {
    match command {
        [program, args @ ..] => Ok(Stdio::new(program).args(args)),
        [] => Err(Error::config("what is started is a program with its arguments")),
    }
}
