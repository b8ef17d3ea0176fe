//! Plugins: folders that bring tools, skills, prompts and sub-agents, and are shown before they are trusted.
//!
//! [`Plugin::load`] only reads: nothing of the folder runs. Printed, a plugin says all that it brings, with a digest over every byte of its
//! folder. [`Plugin::trust`] takes the digest that was looked at, and makes [`Parts`] for an agent. What was looked at is what is used: the
//! files are copied when they are read, to a folder that only this process writes to, and a change of the plugin's own folder is seen when it is
//! loaded again. [`TrustStore`] keeps what people decided.
//!
//! Code of a plugin runs in processes alone, in the [`Sandbox`] that the application gives. A server of tools that must be outside says so in
//! the manifest, and in what is printed.

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

/// A plugin as it was read, which is not trusted yet; see the [module](self).
#[derive(Clone, Debug)]
pub struct Plugin {
    folder: Folder,
    manifest: Manifest,
    digest: String,
}

impl Plugin {
    /// Reads the plugin in a folder. Nothing of it runs.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) if its `plugin.yaml` has something wrong, with the key; if it is for another version of the
    /// framework; if the folder has links, more than 2,000 files or more than 32 MiB; if a file or a folder that is named is not in it; if
    /// it cannot be copied.
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

    /// Its name.
    pub fn name(&self) -> &str {
        &self.manifest.name
    }

    /// The folder with the copy of its files: a sandbox for its scripts must let them read it. It is there as long as the plugin, its parts and
    /// their clones are.
    pub fn dir(&self) -> &Path {
        self.folder.dir()
    }

    /// SHA-256 over the names and bytes of all its files, in hexadecimal. What is trusted is this.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// Takes the plugin as trusted, if it is what was looked at. Values of `config` are by name; null is none. A secret is given by reference:
    /// `{"env": NAME}` or `{"file": PATH}`. Scripts and servers of tools run in `sandbox`,
    /// but for servers that the printed plugin shows outside of it.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) if `digest` is not the plugin's, for a value that is missing, unknown or of another
    /// type, for a secret that is written out or would be seen by others, and for a part that cannot be made.
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
