//! [`Transaction`]: several changes as one atomic step.

use std::{collections::BTreeMap, fmt, sync::Arc};

use serde::{Serialize, de::DeserializeOwned};

use super::{
    GlobalStorage, Key,
    global::{decode, encode},
    slot::{Held, Slot},
    slots::{ByName, Outcome, changes_itself},
};
use crate::error::Result;

/// Changes to several keys that take effect atomically.
pub struct Transaction<'a> {
    storage: &'a GlobalStorage,
    /// Snapshot of the storage at the start.
    before: Arc<ByName>,
    /// Versions of the values that were read.
    read: BTreeMap<String, u64>,
    staged: BTreeMap<String, Held>,
}

impl<'a> Transaction<'a> {
    pub(super) fn new(storage: &'a GlobalStorage) -> Self {
        let before = storage.slots().snapshot();
        Self { storage, before, read: BTreeMap::new(), staged: BTreeMap::new() }
    }

    /// Returns the value under `key`, including changes made by this transaction.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if the value has another type.
    pub fn get<T: DeserializeOwned>(&mut self, key: &Key<T>) -> Result<Option<T>> {
        let name = self.storage.full(key.name());
        if let Some(staged) = self.staged.get(&*name) {
            return staged.as_ref().map(|value| decode(key, value)).transpose();
        }
        let found = self.before.get(&*name).and_then(Slot::get);
        self.read.insert(name.into_owned(), found.map_or(0, |(_, version)| version));
        found.map(|(value, _)| decode(key, value)).transpose()
    }

    /// Sets a value.
    ///
    /// # Errors
    /// If the value cannot be serialised as JSON.
    pub fn set<T: Serialize>(&mut self, key: &Key<T>, value: &T) -> Result<()> {
        self.staged.insert(self.storage.full(key.name()).into_owned(), Some(Arc::new(encode(key, value)?)));
        Ok(())
    }

    /// Commits the changes. Returns `false` if a value that was read has changed since.
    pub(super) fn commit(self) -> Result<bool> {
        drop(self.before); // otherwise the storage would be copied
        let read = self.read.iter().map(|(name, version)| (name.as_str(), *version));
        match self.storage.slots().set_if(self.storage.writer(), read, self.staged)? {
            Outcome::Set => Ok(true),
            Outcome::Moved { here: None } => Ok(false),
            Outcome::Moved { here: Some(name) } => Err(changes_itself(&name)),
        }
    }
}

impl fmt::Debug for Transaction<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.staged.keys()).finish() // values may be secret
    }
}
