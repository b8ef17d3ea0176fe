//! `skills`: instructions that a model loads when it needs them.

use agent_core::Result;
use agent_tools::{Skills, ToolSet};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::config::file::FilePath;

/// Instructions that a model loads when it needs them.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SkillsConfig {
    /// The folder of skills.
    folder: FilePath,
}

pub(super) fn tools(config: SkillsConfig) -> Result<ToolSet> {
    Ok(Skills::open(config.folder.0)?.tools())
}
