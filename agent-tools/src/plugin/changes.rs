//! Differences between a plugin and its trusted version.

use std::{collections::BTreeMap, fmt};

use sha2::{Digest, Sha256};

use super::Plugin;

/// Differences between a plugin's folder and its trusted version: see
/// [`TrustStore::changes`](super::TrustStore::changes). `Display` prints a list for people; the
/// printed [`Plugin`] shows the current content of each part.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Changes {
    /// Trusted version.
    pub from: String,
    /// Current version.
    pub to: String,
    /// Added parts and files.
    pub added: Vec<String>,
    /// Removed parts and files.
    pub removed: Vec<String>,
    /// Changed parts and files.
    pub changed: Vec<String>,
}

/// Digests of parts and files by name.
pub(super) type Digests = BTreeMap<String, String>;

fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Plugin {
    /// Returns the digests of all parts and files.
    pub(super) fn digests(&self) -> Digests {
        let parts = self.shown().into_iter().map(|(name, says)| (name, digest(says.as_bytes())));
        let files = self.folder.digests().map(|(path, digest)| (format!("file {path:?}"), digest));
        let about = &self.manifest.description;
        parts.chain(files).chain([("description".to_owned(), digest(about.as_bytes()))]).collect()
    }
}

impl Changes {
    pub(super) fn between(from: String, old: &Digests, to: &Plugin) -> Self {
        let new = to.digests();
        let without = |these: &Digests, those: &Digests| {
            these.keys().filter(|name| !those.contains_key(*name)).cloned().collect()
        };
        let is_other = |(name, digest): &(&String, &String)| old.get(*name).is_some_and(|known| known != *digest);
        let changed = new.iter().filter(is_other).map(|(name, _)| name.clone()).collect();
        let (added, removed) = (without(&new, old), without(old, &new));
        Self { from, to: to.manifest.version.to_string(), added, removed, changed }
    }

    /// Returns true if there are no differences.
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty() && self.changed.is_empty()
    }
}

impl fmt::Display for Changes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "trusted was version {:?}, and this is {:?}", self.from, self.to)?;
        for (what, names) in [("added", &self.added), ("removed", &self.removed), ("changed", &self.changed)] {
            names.iter().try_for_each(|name| writeln!(f, "  {what} {name}"))?;
        }
        Ok(())
    }
}
