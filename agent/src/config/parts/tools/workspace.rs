//! `workspace`: tools for the files of a folder.

use agent_core::Result;
use agent_tools::{ToolSet, Workspace};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::config::{
    file::{FilePath, seconds},
    parts::change::Choice,
};

/// Tools for the files of a folder: read, write, edit, search.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct WorkspaceConfig {
    /// The folder; nothing outside it is reached. Default: that of this process.
    root: Option<FilePath>,
    /// Offers only tools that read. Default: false.
    read_only: bool,
    /// Reads files with several hard links, which package managers create. Default: false.
    allow_hard_links: bool,
    /// Most bytes of a file that is read or written.
    max_file_bytes: Option<u64>,
    /// Most bytes of a tool's output.
    max_output_bytes: Option<usize>,
    /// Seconds that a search may take.
    #[schemars(range(min = 0.001))]
    search_timeout: Option<f64>,
    #[serde(flatten)]
    choice: Choice,
}

pub(super) fn tools(config: WorkspaceConfig) -> Result<ToolSet> {
    let mut workspace = Workspace::open(config.root.as_ref().map_or(".", |root| &root.0))?;
    if config.read_only {
        workspace = workspace.read_only();
    }
    if config.allow_hard_links {
        workspace = workspace.allow_hard_links();
    }
    if let Some(most) = config.max_file_bytes {
        workspace = workspace.max_file_bytes(most);
    }
    if let Some(most) = config.max_output_bytes {
        workspace = workspace.max_output_bytes(most);
    }
    if let Some(longest) = config.search_timeout {
        workspace = workspace.search_timeout(seconds(longest)?);
    }
    config.choice.of(workspace.tools())
}
