//! `sandbox`: files and commands, in a sandbox that each session has for itself.

use std::{collections::BTreeMap, sync::Arc};

use agent_core::{Error, Result};
#[cfg(feature = "container")]
use agent_tools::sandbox::{ContainerSandbox, ContainerSandboxBuilder};
#[cfg(feature = "e2b")]
use agent_tools::sandbox::{E2bSandbox, E2bSandboxBuilder};
use agent_tools::{PerSession, Shell, ToolSet, Workspace, sandbox::Sandbox};
use schemars::JsonSchema;
use serde::Deserialize;

#[cfg(feature = "container")]
use super::limits::ProgramLimits;
use crate::config::{file::seconds, parts::change::Choice};

/// Tools for files and commands, in a sandbox that each session has for itself: a container, or a machine of a service.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct SandboxConfig {
    /// A container of Docker or Podman.
    #[cfg(feature = "container")]
    container: Option<Container>,
    /// A machine of a service with E2B's interface.
    #[cfg(feature = "e2b")]
    e2b: Option<Machine>,
    /// Lets commands reach the network. Default: false.
    network: bool,
    /// Variables of the environment of commands.
    env: BTreeMap<String, String>,
    /// Seconds for which a sandbox is kept that no run uses. Default: 900.
    #[schemars(range(min = 0.001))]
    idle: Option<f64>,
    #[serde(flatten)]
    choice: Choice,
}

/// A container.
#[cfg(feature = "container")]
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Container {
    /// The image, which is there already.
    image: String,
    /// Address of the engine. Default: `DOCKER_HOST`, or the first existing socket.
    #[serde(default)]
    engine: Option<String>,
    /// The folder in which commands run. Default: `/workspace`.
    #[serde(default)]
    root: Option<String>,
    /// Whom commands run as. Default: the image's user.
    #[serde(default)]
    user: Option<String>,
    /// Processors that all commands together may use, such as 0.5. Default: all.
    #[serde(default)]
    cpus: Option<f64>,
    /// Resource limits of programs.
    #[serde(default)]
    limits: ProgramLimits,
}

/// A machine of a service.
#[cfg(feature = "e2b")]
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Machine {
    /// The template that it is made from.
    template: String,
    /// The key of the account.
    api_key: crate::config::file::SecretText,
    /// The service's domain. Default: E2B's own.
    #[serde(default)]
    domain: Option<String>,
    /// The folder in which commands run.
    #[serde(default)]
    root: Option<String>,
    /// Whom commands run as.
    #[serde(default)]
    user: Option<String>,
}

impl SandboxConfig {
    /// The sandboxes of the kind that is said.
    fn sandboxes(&self) -> Result<PerSession> {
        let mut kinds = Vec::new();
        #[cfg(feature = "container")]
        if let Some(container) = &self.container {
            let builder = container.builder(self)?;
            kinds.push(PerSession::new(move |_| builder.clone().build()));
        }
        #[cfg(feature = "e2b")]
        if let Some(machine) = &self.e2b {
            let builder = machine.builder(self);
            kinds.push(PerSession::new(move |_| builder.clone().build()));
        }
        match (kinds.pop(), kinds.pop()) {
            (Some(one), None) => Ok(one),
            _ => Err(Error::config("a sandbox is either a 'container' or a machine of 'e2b'")),
        }
    }
}

#[cfg(feature = "container")]
impl Container {
    fn builder(&self, shared: &SandboxConfig) -> Result<ContainerSandboxBuilder> {
        let mut builder = ContainerSandbox::builder(&self.image).limits(self.limits.limits()?);
        if let Some(engine) = &self.engine {
            builder = builder.engine(engine);
        }
        if let Some(root) = &self.root {
            builder = builder.root(root);
        }
        if let Some(user) = &self.user {
            builder = builder.user(user);
        }
        if let Some(cpus) = self.cpus {
            builder = builder.cpus(cpus);
        }
        let builder = shared.env.iter().fold(builder, |builder, (name, value)| builder.env(name, value));
        Ok(if shared.network { builder.allow_network() } else { builder })
    }
}

#[cfg(feature = "e2b")]
impl Machine {
    fn builder(&self, shared: &SandboxConfig) -> E2bSandboxBuilder {
        let mut builder = E2bSandbox::builder(&self.template, self.api_key.0.as_str());
        if let Some(domain) = &self.domain {
            builder = builder.domain(domain);
        }
        if let Some(root) = &self.root {
            builder = builder.root(root);
        }
        if let Some(user) = &self.user {
            builder = builder.user(user);
        }
        let builder = shared.env.iter().fold(builder, |builder, (name, value)| builder.env(name, value));
        if shared.network { builder.allow_network() } else { builder }
    }
}

pub(super) fn tools(config: SandboxConfig) -> Result<PerSession> {
    let sandboxes = config.sandboxes()?;
    let sandboxes = match config.idle {
        Some(time) => sandboxes.idle(seconds(time)?),
        None => sandboxes,
    };
    let choice = config.choice;
    Ok(sandboxes.offering(move |sandbox: Arc<dyn Sandbox>| -> Result<ToolSet> {
        let all = Workspace::shared(sandbox.clone()).tools().extend(Shell::shared(sandbox).tools()?);
        choice.clone().of(all)
    }))
}
