//! Persistent trust decisions about plugins.

use std::{
    collections::BTreeMap,
    fs, io,
    io::Write,
    path::{Path, PathBuf},
    time::SystemTime,
};

use agent_core::{Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};
use tempfile::NamedTempFile;

use super::{
    Plugin,
    changes::{Changes, Digests},
};

/// JSON file with the digests of trusted plugins, by name. Each operation reads and writes the
/// whole file; only its owner may read it. Of two concurrent writers, the last one wins.
///
/// ```
/// use agent_tools::plugin::{Plugin, TrustStore};
///
/// # let folder = tempfile::tempdir().expect("a directory");
/// # let manifest = "name: bees\nversion: 1.0.0\nframework: '*'\n";
/// # std::fs::write(folder.path().join("plugin.yaml"), manifest).expect("is written");
/// # let file = folder.path().join("trusted.json");
/// # let folder = folder.path();
/// let store = TrustStore::new(file);
/// let plugin = Plugin::load(folder)?;
/// if store.digest(plugin.name())?.as_deref() != Some(plugin.digest()) {
///     println!("{plugin}");
///     if let Some(changes) = store.changes(&plugin)? {
///         println!("{changes}");
///     }
///     store.trust(&plugin)?; // if a person says yes
/// }
/// assert_eq!(store.digest("bees")?.as_deref(), Some(plugin.digest()));
/// # Ok::<(), agent_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct TrustStore(PathBuf);

#[derive(Debug, Serialize, Deserialize)]
struct Trusted {
    version: String,
    digest: String,
    /// Milliseconds since the Unix epoch.
    at: u64,
    /// Digests of its parts and files, by name.
    parts: Digests,
}

type ByName = BTreeMap<String, Trusted>;

impl TrustStore {
    /// Uses the file at `path`, which is created with the first plugin.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// Returns the digest that was trusted last under this name.
    ///
    /// # Errors
    /// Of kind [`Config`](ErrorKind::Config) if the file cannot be read.
    pub fn digest(&self, plugin: &str) -> Result<Option<String>> {
        Ok(self.read()?.remove(plugin).map(|trusted| trusted.digest))
    }

    /// Returns the changes of the plugin since it was trusted; `None` if no plugin of its name was.
    ///
    /// # Errors
    /// As [`digest`](Self::digest).
    pub fn changes(&self, plugin: &Plugin) -> Result<Option<Changes>> {
        let known = self.read()?.remove(plugin.name());
        Ok(known.map(|known| Changes::between(known.version, &known.parts, plugin)))
    }

    /// Records that the loaded plugin is trusted, in place of an older version.
    ///
    /// # Errors
    /// Of kind [`Config`](ErrorKind::Config) if the file cannot be read or written; the file is
    /// then unchanged.
    pub fn trust(&self, plugin: &Plugin) -> Result<()> {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let trusted = Trusted {
            version: plugin.manifest.version.to_string(),
            digest: plugin.digest.clone(),
            at: u64::try_from(since.as_millis()).unwrap_or(u64::MAX),
            parts: plugin.digests(),
        };
        let mut all = self.read()?;
        all.insert(plugin.name().to_owned(), trusted);
        self.write(&all)
    }

    /// Removes the trust decision for this name.
    ///
    /// # Errors
    /// As [`trust`](Self::trust).
    pub fn forget(&self, plugin: &str) -> Result<()> {
        let mut all = self.read()?;
        all.remove(plugin).map_or(Ok(()), |_| self.write(&all))
    }

    fn read(&self) -> Result<ByName> {
        match fs::read(&self.0) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|e| self.failed(io::Error::other(e))),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(ByName::new()),
            Err(e) => Err(self.failed(e)),
        }
    }

    fn write(&self, all: &ByName) -> Result<()> {
        let text = serde_json::to_vec_pretty(all).map_err(|e| self.failed(io::Error::other(e)))?;
        let folder = self.0.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let written = NamedTempFile::new_in(folder).and_then(|mut file| {
            file.write_all(&text)?;
            file.as_file().sync_all()?;
            file.persist(&self.0).map_err(io::Error::from)
        });
        written.map(drop).map_err(|e| self.failed(e))
    }

    fn failed(&self, e: io::Error) -> Error {
        let message = format!("the trusted plugins in '{}' cannot be read or written: {e}", self.0.display());
        Error::new(ErrorKind::Config, message).with_source(e)
    }
}
