//! `skills`: instructions that a model loads when it needs them.

use std::path::Path;

use agent_core::Result;
use agent_tools::{Skill, Skills, ToolSet};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::config::file::FilePath;

/// Instructions that a model loads when it needs them: the folder in which they are, or folders.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(super) enum SkillsConfig {
    /// The folder of a skill, or of skills.
    Folder(FilePath),
    /// Several of them.
    Folders(Vec<FilePath>),
}

pub(super) fn tools(config: SkillsConfig) -> Result<ToolSet> {
    let folders = match config {
        SkillsConfig::Folder(folder) => vec![folder],
        SkillsConfig::Folders(folders) => folders,
    };
    let mut all = Skills::new();
    for FilePath(folder) in folders {
        if Path::new(&folder).join("SKILL.md").is_file() {
            all = all.skill(Skill::open(folder)?)?;
            continue;
        }
        for skill in Skills::open(folder)?.iter() {
            all = all.skill(skill.clone())?;
        }
    }
    Ok(all.tools())
}
