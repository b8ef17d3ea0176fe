//! `plugin`: a folder that somebody else wrote.

use std::sync::Arc;

use agent_core::{Error, Result};
use agent_tools::{ToolSet, plugin::Plugin, sandbox::Sandbox};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::shell::Place;
use crate::config::{file::FilePath, parts::change::Choice};

/// The scripts and operations of a plugin, which run in a sandbox of their own.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub(super) struct PluginConfig {
    /// The plugin's folder.
    folder: FilePath,
    /// The digest that the plugin had when somebody looked at it and trusted it. `agent plugin FOLDER` shows both.
    digest: String,
    /// What the plugin is told, by name.
    #[serde(default)]
    config: Value,
    /// Where its scripts run.
    #[serde(default)]
    sandbox: Place,
    #[serde(flatten)]
    choice: Choice,
}

pub(super) fn tools(config: PluginConfig) -> Result<ToolSet> {
    let plugin = Plugin::load(&config.folder.0)?;
    let sandbox: Arc<dyn Sandbox> = Arc::new(config.sandbox.builder().build()?);
    let parts = plugin.trust(&config.digest, &config.config, &sandbox)?;
    let alone = [
        ("servers of tools", parts.servers.is_empty()),
        ("skills", parts.skills.iter().next().is_none()),
        ("sub-agents", parts.agents.is_empty()),
        ("rules for asking", parts.ask.is_empty()),
    ];
    if let Some((what, _)) = alone.iter().find(|(_, none)| !none) {
        return Err(Error::config(format!(
            "the plugin '{}' brings {what}, which a file cannot take from it yet: use the plugin from a program",
            plugin.name()
        )));
    }
    config.choice.of(parts.tools)
}
