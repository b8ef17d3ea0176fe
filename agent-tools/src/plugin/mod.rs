//! Plugins: folders with tools, skills, prompts and sub-agents, reviewed before they are trusted.
//!
//! [`Plugin::load`] only reads: no code of the folder runs. A printed plugin lists everything that
//! it contains, with a digest over every byte of its folder. [`Plugin::trust`] takes the reviewed
//! digest, and returns [`Parts`] for an agent. The reviewed content is the content in use: loading
//! copies the files to a private folder, and a change of the plugin's own folder takes effect only
//! when it is loaded again. [`TrustStore`] persists the decisions of people.
//!
//! A plugin's code runs in separate processes only, in the [`Sandbox`] that the application
//! supplies. The manifest, and hence the printed plugin, declares MCP servers that must run outside
//! the sandbox.

mod changes;
mod config;
mod display;
mod folder;
mod manifest;
mod parts;
mod store;

use std::{path::Path, sync::Arc};

use agent_core::{Error, Result};
use serde_json::Value;

pub use self::{
    changes::Changes,
    parts::{Parts, SubAgent},
    store::TrustStore,
};
use self::{folder::Folder, manifest::Manifest};
use crate::sandbox::Sandbox;

/// Loaded plugin that is not trusted yet; see the [module](self).
#[derive(Clone, Debug)]
pub struct Plugin {
    folder: Folder,
    manifest: Manifest,
    digest: String,
}

impl Plugin {
    /// Loads the plugin in a folder. Runs none of its code.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) if `plugin.yaml` is invalid (the
    /// message names the key), or is for another version of the framework; if the folder contains
    /// links, more than 2,000 files or more than 32 MiB; if a named file or folder is missing; if
    /// the folder cannot be copied.
    pub fn load(dir: impl AsRef<Path>) -> Result<Self> {
        let folder = Folder::read(dir.as_ref())?;
        let in_folder = |e: Error| e.map_message(|why| format!("plugin '{}': {why}", folder.from.display()));
        let manifest = folder.text("plugin.yaml").and_then(Manifest::read).map_err(in_folder)?;
        for file in manifest.files() {
            folder.text(file).map_err(in_folder)?;
        }
        if let Some(skills) = manifest.skills.iter().find(|skills| folder.below(skills).next().is_none()) {
            return Err(in_folder(Error::config(format!("skills: '{skills}' is not a folder of the plugin"))));
        }
        let digest = folder.digest();
        Ok(Self { folder, manifest, digest })
    }

    /// Returns the name of the plugin.
    pub fn name(&self) -> &str {
        &self.manifest.name
    }

    /// Returns the folder with the copy of its files, which a sandbox for its scripts must be able
    /// to read. It exists as long as the plugin, its parts and their clones.
    pub fn dir(&self) -> &Path {
        self.folder.dir()
    }

    /// Returns the SHA-256 digest over the names and bytes of all its files, in hexadecimal. Trust
    /// refers to this digest.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// Trusts the plugin if its digest is the reviewed one. Values of `config` are by name; null
    /// means no values. A secret is given by reference: `{"env": NAME}` or `{"file": PATH}`.
    /// Scripts and MCP servers run in `sandbox`, except servers that the printed plugin shows
    /// outside of it.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) if `digest` is not the plugin's, for a
    /// value that is missing, unknown or of another type, for a secret in plain text or at a
    /// visible place, and for a part that cannot be created.
    pub fn trust(&self, digest: &str, config: &Value, sandbox: &Arc<dyn Sandbox>) -> Result<Parts> {
        let name = self.name();
        if digest != self.digest {
            return Err(Error::config(format!(
                "plugin '{name}' is not what was trusted: look at it, and trust its new digest"
            )));
        }
        self.parts(config, sandbox).map_err(|e| e.map_message(|why| format!("plugin '{name}': {why}")))
    }
}
