//! Permissions of a plugin, and the digest to trust it.

use std::path::Path;

use agent::{Result, tools::plugin::Plugin};

use super::Finding;

/// # Errors
/// A folder that is no plugin.
pub(super) fn findings(folder: &Path) -> Result<Vec<Finding>> {
    let plugin = Plugin::load(folder)?;
    let trusted = format!("- plugin: {{folder: {}, digest: '{}'}}", folder.display(), plugin.digest());
    Ok(vec![
        Finding::well("plugin", plugin.to_string()),
        Finding::well("trust", format!("if you trust it, write into the tools of a file:\n{trusted}")),
    ])
}
