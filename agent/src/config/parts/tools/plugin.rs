//! `plugin`: a folder that somebody else wrote.

use std::sync::Arc;

use agent_core::{Error, Result, RunCx, Tool, Toolset, async_trait};
use agent_tools::{
    mcp::Client,
    plugin::{Parts, Plugin},
    sandbox::Sandbox,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::shell::Place;
use crate::config::{file::FilePath, parts::change::Choice};

/// Tools of a plugin: its scripts and servers in a sandbox of their own, operations and skills; its sub-agents are among the agent's,
/// and what it wants asked about becomes a rule of the middleware `approval`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub(in crate::config) struct PluginConfig {
    /// The plugin's folder.
    folder: FilePath,
    /// The digest that the plugin had when somebody looked at it and trusted it. `agent doctor FOLDER` shows both.
    digest: String,
    /// Configuration of the plugin, by name.
    #[serde(default)]
    config: Value,
    /// Sandbox of its programs.
    #[serde(default)]
    sandbox: Place,
    /// The sub-agent of the plugin whose tools these are. Default: none, the tools are the agent's own.
    #[serde(default)]
    pub(in crate::config) agent: Option<String>,
    #[serde(flatten)]
    choice: Choice,
}

impl PluginConfig {
    /// # Errors
    /// A plugin that cannot be read, or is not the one that was trusted.
    pub(in crate::config) fn open(&self) -> Result<Parts> {
        let plugin = Plugin::load(&self.folder.0)?;
        let mut place = self.sandbox.clone();
        place.readable.push(FilePath(plugin.dir().to_string_lossy().into_owned()));
        let sandbox: Arc<dyn Sandbox> = Arc::new(place.builder()?.build()?);
        plugin.trust(&self.digest, &self.config, &sandbox)
    }
}

/// The tools of a plugin, and those of its servers.
pub(super) struct PluginTools {
    own: Vec<Arc<dyn Tool>>,
    servers: Vec<Client>,
}

pub(super) fn tools(config: PluginConfig) -> Result<PluginTools> {
    let parts = config.open()?;
    let Some(name) = &config.agent else {
        let own = config.choice.of(parts.tools)?.into_iter().chain(parts.skills.tools()).collect();
        return Ok(PluginTools { own, servers: parts.servers });
    };
    let agent = parts.agents.into_iter().find(|agent| agent.name == *name);
    let agent = agent.ok_or_else(|| Error::config(format!("the plugin has no sub-agent '{name}'")))?;
    Ok(PluginTools { own: agent.tools.into_iter().collect(), servers: Vec::new() })
}

#[async_trait]
impl Toolset for PluginTools {
    async fn tools(&self, cx: &RunCx) -> Result<Vec<Arc<dyn Tool>>> {
        let mut tools = self.own.clone();
        for server in &self.servers {
            tools.extend(server.tools(cx).await?);
        }
        Ok(tools)
    }

    async fn warm_up(&self) -> Result<()> {
        for tool in &self.own {
            tool.warm_up().await?;
        }
        for server in &self.servers {
            server.warm_up().await?;
        }
        Ok(())
    }

    async fn close(&self) -> Result<()> {
        // Closes all of them, and returns the last error.
        let mut closed = Ok(());
        for tool in &self.own {
            closed = tool.close().await.and(closed);
        }
        for server in &self.servers {
            closed = server.close().await.and(closed);
        }
        closed
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use agent_core::{ToolOutput, ToolRequest, ToolSpec};

    use super::*;

    struct Stuck(Arc<AtomicUsize>);

    #[async_trait]
    impl Tool for Stuck {
        fn spec(&self) -> ToolSpec {
            ToolSpec::new("stuck", "", Value::Null)
        }

        async fn call(&self, _: ToolRequest) -> Result<ToolOutput> {
            Err(Error::tool("is not called"))
        }

        async fn close(&self) -> Result<()> {
            self.0.fetch_add(1, Ordering::Relaxed);
            Err(Error::tool("stuck"))
        }
    }

    #[tokio::test]
    async fn what_cannot_be_closed_does_not_keep_the_rest_open() {
        let closed = Arc::new(AtomicUsize::new(0));
        let own: Vec<Arc<dyn Tool>> = (0..3).map(|_| Arc::new(Stuck(closed.clone())) as _).collect();
        PluginTools { own, servers: Vec::new() }.close().await.expect_err("they are stuck");
        assert_eq!(closed.load(Ordering::Relaxed), 3);
    }
}
