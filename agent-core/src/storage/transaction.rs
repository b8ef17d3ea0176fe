//! [`Transaction`]: several changes as one atomic step.

use std::{collections::BTreeMap, fmt, sync::Arc};

use serde::{Serialize, de::DeserializeOwned};

use super::{
    GlobalStorage, Key,
    global::{decode, encode},
    nested::Nested,
    slot::{Held, Slot},
    slots::{ByName, Outcome, changes_itself},
};
use crate::error::Result;

/// Changes to several keys that take effect atomically.
pub struct Transaction<'a> {
    storage: &'a GlobalStorage,
    nested: Nested,
    /// Snapshot of the storage at the start.
    before: Arc<ByName>,
    /// Versions of the values that were read.
    read: BTreeMap<String, u64>,
    staged: BTreeMap<String, Held>,
}

impl<'a> Transaction<'a> {
    pub(super) fn new(storage: &'a GlobalStorage) -> Self {
        let before = storage.slots().snapshot();
        let nested = Nested::enter(storage.slots());
        Self { storage, nested, before, read: BTreeMap::new(), staged: BTreeMap::new() }
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

    /// Removes a value. Returns `true` if there was one.
    ///
    /// ```
    /// use agent_core::{GlobalStorage, Key};
    ///
    /// const DRAFT: Key<String> = Key::new("draft");
    /// const SENT: Key<Vec<String>> = Key::new("sent");
    ///
    /// let storage = GlobalStorage::default();
    /// storage.set(&DRAFT, &"Dear Ada".to_owned())?;
    /// storage.transaction(|tx| {
    ///     let draft = tx.get(&DRAFT)?.unwrap_or_default();
    ///     tx.update(&SENT, |sent| [sent.unwrap_or_default(), vec![draft]].concat())?;
    ///     tx.remove(&DRAFT);
    ///     Ok(())
    /// })?;
    /// assert_eq!((storage.get(&DRAFT)?, storage.get(&SENT)?), (None, Some(vec!["Dear Ada".to_owned()])));
    /// # Ok::<(), agent_core::Error>(())
    /// ```
    pub fn remove<T>(&mut self, key: &Key<T>) -> bool {
        let name = self.storage.full(key.name());
        let was_there = match self.staged.get(&*name) {
            Some(staged) => staged.is_some(),
            None => {
                let found = self.before.get(&*name).and_then(Slot::get);
                self.read.insert(name.clone().into_owned(), found.map_or(0, |(_, version)| version));
                found.is_some()
            }
        };
        self.staged.insert(name.into_owned(), None);
        was_there
    }

    /// Sets the value to what `change` computes from the current one, and returns the new value.
    ///
    /// # Errors
    /// Those of [`get`](Self::get) and [`set`](Self::set).
    pub fn update<T>(&mut self, key: &Key<T>, change: impl FnOnce(Option<T>) -> T) -> Result<T>
    where
        T: Serialize + DeserializeOwned,
    {
        let new = change(self.get(key)?);
        self.set(key, &new)?;
        Ok(new)
    }

    /// Commits the changes. Returns `false` if a value that was read has changed since.
    pub(super) fn commit(self) -> Result<bool> {
        drop(self.before); // otherwise the storage would be copied
        let read = self.read.iter().map(|(name, version)| (name.as_str(), *version));
        match self.storage.slots().set_if(self.storage.writer(), read, self.staged)? {
            Outcome::Set => Ok(true),
            Outcome::Moved(name) if self.nested.has_changed(&name) => Err(changes_itself(&name)),
            Outcome::Moved(_) => Ok(false),
        }
    }
}

impl fmt::Debug for Transaction<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.staged.keys()).finish() // values may be secret
    }
}
