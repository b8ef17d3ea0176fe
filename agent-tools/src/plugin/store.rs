//! What people decided about plugins.

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

/// A JSON file with the digests of the plugins that were trusted, by their names. It is read and written at each call, as a whole; only its owner may
/// read it. Of two processes that write at once, the last is right.
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
    /// Milliseconds since 1970.
    at: u64,
    /// Digests of its parts and files, by their names.
    parts: Digests,
}

type ByName = BTreeMap<String, Trusted>;

impl TrustStore {
    /// The file at `path`; it is made with the first plugin.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// The digest that was trusted last under this name.
    ///
    /// # Errors
    /// Of kind [`Config`](ErrorKind::Config) if the file cannot be read.
    pub fn digest(&self, plugin: &str) -> Result<Option<String>> {
        Ok(self.read()?.remove(plugin).map(|trusted| trusted.digest))
    }

    /// What has changed in the plugin since it was trusted; none if no plugin of its name was.
    ///
    /// # Errors
    /// As [`digest`](Self::digest).
    pub fn changes(&self, plugin: &Plugin) -> Result<Option<Changes>> {
        let known = self.read()?.remove(plugin.name());
        Ok(known.map(|known| Changes::between(known.version, &known.parts, plugin)))
    }

    /// Keeps that the plugin is trusted as it was loaded, in the place of an older one.
    ///
    /// # Errors
    /// Of kind [`Config`](ErrorKind::Config) if the file cannot be read or written; then it is as it was.
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

    /// Forgets what was trusted under this name.
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
