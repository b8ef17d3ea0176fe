//! `shell`: commands in a sandbox.

use std::collections::BTreeMap;

use agent_core::Result;
use agent_tools::{
    Shell, ToolSet,
    sandbox::{Isolation, LocalSandbox, LocalSandboxBuilder},
};
use schemars::JsonSchema;
use serde::Deserialize;

use super::limits::ProgramLimits;
use crate::config::{
    file::{FilePath, seconds},
    parts::change::Choice,
};

/// Commands in a sandbox on this machine.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct ShellConfig {
    #[serde(flatten)]
    place: Place,
    /// Shell program. Default: `bash`, or `sh` if it is not installed.
    program: Option<String>,
    /// Seconds that a command may take unless it says otherwise.
    #[schemars(range(min = 0.001))]
    timeout: Option<f64>,
    /// Seconds that a command may ask for.
    #[schemars(range(min = 0.001))]
    max_timeout: Option<f64>,
    /// Most bytes of output that the model is shown of one command.
    max_output_bytes: Option<usize>,
    /// Maximum number of background commands at a time.
    max_tasks: Option<usize>,
    #[serde(flatten)]
    choice: Choice,
}

/// A sandbox on this machine.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct Place {
    /// The folder in which commands run, and which they may change. Default: that of this process.
    root: Option<FilePath>,
    /// Lets commands reach the network. Default: false.
    network: bool,
    /// Other folders that commands may read.
    pub(super) readable: Vec<FilePath>,
    /// Other folders that commands may change.
    writable: Vec<FilePath>,
    /// Variables of the environment of commands.
    env: BTreeMap<String, String>,
    /// Variables of this process's environment that commands are given.
    pass: Vec<String>,
    /// Resource limits of each command.
    limits: ProgramLimits,
    /// Isolation backend. Default: the first one that works.
    isolation: Option<Kept>,
}

/// Isolation backend.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Kept {
    /// The program `bwrap`.
    Bubblewrap,
    /// Rules of the kernel.
    Landlock,
}

impl Place {
    /// # Errors
    /// Invalid durations.
    pub(super) fn builder(self) -> Result<LocalSandboxBuilder> {
        let mut sandbox = LocalSandbox::builder(self.root.map_or_else(|| ".".to_owned(), |root| root.0));
        for FilePath(path) in self.readable {
            sandbox = sandbox.readable(path);
        }
        for FilePath(path) in self.writable {
            sandbox = sandbox.writable(path);
        }
        for (name, value) in self.env {
            sandbox = sandbox.env(name, value);
        }
        let pass: Vec<_> = self.pass.iter().map(String::as_str).collect();
        sandbox = sandbox.inherit_env(&pass).limits(self.limits.limits()?);
        sandbox = match self.isolation {
            None => sandbox,
            Some(Kept::Bubblewrap) => sandbox.isolation(Isolation::Bubblewrap),
            Some(Kept::Landlock) => sandbox.isolation(Isolation::Landlock),
        };
        Ok(if self.network { sandbox.allow_network() } else { sandbox })
    }
}

pub(super) fn tools(config: ShellConfig) -> Result<ToolSet> {
    let mut shell = Shell::over(config.place.builder()?.build()?);
    if let Some(program) = config.program {
        shell = shell.program(program);
    }
    if let Some(time) = config.timeout {
        shell = shell.timeout(seconds(time)?);
    }
    if let Some(time) = config.max_timeout {
        shell = shell.max_timeout(seconds(time)?);
    }
    if let Some(most) = config.max_output_bytes {
        shell = shell.max_output_bytes(most);
    }
    if let Some(most) = config.max_tasks {
        shell = shell.max_tasks(most);
    }
    config.choice.of(shell.tools()?)
}
