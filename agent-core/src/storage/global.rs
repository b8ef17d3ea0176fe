//! [`GlobalStorage`]: values that a whole hierarchy of agents shares.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    fmt,
    ops::Bound,
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
};

use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use super::Key;
use crate::{Error, ErrorKind, Result};

/// Values shared by reference through a whole hierarchy of agents; cheap to clone, and safe under parallel sub-agents.
///
/// Values are kept as JSON, so that they can be journalled, restored in another process and read by another program. A
/// value of another type than the key's is an error, never "not there".
///
/// ```
/// use agent_core::{GlobalStorage, Key};
///
/// const PLAN: Key<Vec<String>> = Key::new("plan");
/// const DONE: Key<u32> = Key::new("done");
///
/// let storage = GlobalStorage::default();
/// storage.transaction(|tx| {
///     tx.set(&PLAN, &vec!["look".to_owned()])?;
///     tx.set(&DONE, &0)
/// })?;
/// // Versions let a writer notice that somebody was faster.
/// let (_, version) = storage.get_versioned(&DONE)?.expect("was set");
/// assert!(storage.compare_and_set(&DONE, version, &1)?);
/// assert!(!storage.compare_and_set(&DONE, version, &2)?);
/// # Ok::<(), agent_core::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct GlobalStorage {
    shared: Arc<RwLock<Shared>>,
    /// Put before every key of a scoped view.
    prefix: Arc<str>,
}

#[derive(Clone, Default)]
struct Shared {
    slots: BTreeMap<String, Slot>,
    /// Changed since [`GlobalStorage::take_changes`] was last called.
    changed: BTreeSet<String>,
}

#[derive(Clone)]
struct Slot {
    value: Arc<Value>,
    version: u64,
}

impl GlobalStorage {
    /// A storage with these values: what [`snapshot`](Self::snapshot) gave.
    pub fn restore(values: BTreeMap<String, Value>) -> Self {
        let slot = |value| Slot { value: Arc::new(value), version: 1 };
        let slots = values.into_iter().map(|(k, v)| (k, slot(v))).collect();
        Self { shared: Arc::new(RwLock::new(Shared { slots, changed: BTreeSet::new() })), prefix: Arc::default() }
    }

    /// All values of this view, by key.
    pub fn snapshot(&self) -> BTreeMap<String, Value> {
        let shared = self.read();
        let within = shared.slots.range(self.prefix.to_string()..).take_while(|(k, _)| k.starts_with(&*self.prefix));
        within.map(|(k, slot)| (k[self.prefix.len()..].to_owned(), (*slot.value).clone())).collect()
    }

    /// A view whose keys are apart from all others: `scope("billing")` keeps `total` as `billing/total`.
    #[must_use]
    pub fn scope(&self, name: &str) -> Self {
        Self { shared: self.shared.clone(), prefix: [&*self.prefix, name, "/"].concat().into() }
    }

    /// True if this view has no value.
    ///
    /// ```
    /// use agent_core::{GlobalStorage, Key};
    ///
    /// let storage = GlobalStorage::default();
    /// assert!(storage.is_empty());
    /// storage.scope("b").set(&Key::new("total"), &1)?;
    /// assert!(!storage.is_empty() && !storage.scope("b").is_empty());
    /// assert!(storage.scope("a").is_empty() && storage.scope("c").is_empty());
    /// # Ok::<(), agent_core::Error>(())
    /// ```
    pub fn is_empty(&self) -> bool {
        let shared = self.read();
        let first = shared.slots.range::<str, _>((Bound::Included(&*self.prefix), Bound::Unbounded)).next();
        !first.is_some_and(|(name, _)| name.starts_with(&*self.prefix))
    }

    /// The value under `key`, if there is one.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] if the value has another type.
    pub fn get<T: DeserializeOwned>(&self, key: &Key<T>) -> Result<Option<T>> {
        Ok(self.get_versioned(key)?.map(|(value, _)| value))
    }

    /// As [`get`](Self::get), with the version for [`compare_and_set`](Self::compare_and_set).
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn get_versioned<T: DeserializeOwned>(&self, key: &Key<T>) -> Result<Option<(T, u64)>> {
        let slot = self.read().slots.get(&*self.full(key.name())).cloned();
        slot.map(|slot| Ok((decode(key, &slot.value)?, slot.version))).transpose()
    }

    /// The JSON under a name that is only known at run time.
    pub fn get_value(&self, name: &str) -> Option<Arc<Value>> {
        self.read().slots.get(&*self.full(name)).map(|slot| slot.value.clone())
    }

    /// Sets a value.
    ///
    /// # Errors
    /// If the value cannot be JSON.
    pub fn set<T: Serialize>(&self, key: &Key<T>, value: &T) -> Result<()> {
        let value = encode(key, value)?;
        self.write().put(self.full(key.name()).into_owned(), value);
        Ok(())
    }

    /// Sets JSON under a name that is only known at run time.
    pub fn set_value(&self, name: &str, value: Value) {
        self.write().put(self.full(name).into_owned(), value);
    }

    /// Sets and removes values as they were recorded. Those that another run's entries tell are no change of this one.
    pub(crate) fn set_all(&self, values: BTreeMap<String, Option<Value>>, told_already: bool) {
        let mut shared = self.write();
        for (name, value) in values {
            let changed = !told_already || shared.changed.contains(&name);
            match value {
                Some(value) => shared.put(name.clone(), value),
                None => drop(shared.slots.remove(&name)),
            }
            if changed {
                shared.changed.insert(name);
            } else {
                shared.changed.remove(&name);
            }
        }
    }

    /// Removes a value; true if there was one.
    pub fn remove<T>(&self, key: &Key<T>) -> bool {
        let name = self.full(key.name()).into_owned();
        let mut shared = self.write();
        let removed = shared.slots.remove(&name).is_some();
        if removed {
            shared.changed.insert(name);
        }
        removed
    }

    /// Reads, changes and writes as one step: no other writer comes between. Returns the new value.
    ///
    /// # Errors
    /// As [`get`](Self::get) and [`set`](Self::set); nothing is changed then.
    pub fn update<T: Serialize + DeserializeOwned>(
        &self,
        key: &Key<T>,
        change: impl FnOnce(Option<T>) -> T,
    ) -> Result<T> {
        self.transaction(|tx| {
            let new = change(tx.get(key)?);
            tx.set(key, &new)?;
            Ok(new)
        })
    }

    /// Sets the value if its version is still `version`; true if it was. Version 0 means "not there yet".
    ///
    /// # Errors
    /// If the value cannot be JSON.
    pub fn compare_and_set<T: Serialize>(&self, key: &Key<T>, version: u64, value: &T) -> Result<bool> {
        let value = encode(key, value)?;
        let name = self.full(key.name()).into_owned();
        let mut shared = self.write();
        let same = shared.slots.get(&name).map_or(0, |slot| slot.version) == version;
        if same {
            shared.put(name, value);
        }
        Ok(same)
    }

    /// Changes several keys as one step. If `body` fails, nothing is changed. `body` must not touch the storage itself.
    ///
    /// # Errors
    /// Those of `body`.
    pub fn transaction<R>(&self, body: impl FnOnce(&mut Transaction<'_>) -> Result<R>) -> Result<R> {
        let mut shared = self.write();
        let mut tx = Transaction { shared: &shared, storage: self, staged: BTreeMap::new() };
        let result = body(&mut tx)?;
        let staged = tx.staged;
        staged.into_iter().for_each(|(name, value)| shared.put(name, value));
        Ok(result)
    }

    /// The keys that changed since this was last called, with their values now; `None` where one was removed.
    ///
    /// The journal takes them with the end of each step.
    pub fn take_changes(&self) -> BTreeMap<String, Option<Value>> {
        if self.read().changed.is_empty() {
            return BTreeMap::new();
        }
        let mut shared = self.write();
        let changed = std::mem::take(&mut shared.changed);
        changed
            .into_iter()
            .map(|k| {
                let v = shared.slots.get(&k).map(|slot| (*slot.value).clone());
                (k, v)
            })
            .collect()
    }

    fn full<'n>(&self, name: &'n str) -> Cow<'n, str> {
        if self.prefix.is_empty() { name.into() } else { [&*self.prefix, name].concat().into() }
    }

    fn read(&self) -> RwLockReadGuard<'_, Shared> {
        self.shared.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Shared> {
        self.shared.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared {
    fn put(&mut self, name: String, value: Value) {
        let version = self.slots.get(&name).map_or(0, |slot| slot.version) + 1;
        self.slots.insert(name.clone(), Slot { value: Arc::new(value), version });
        self.changed.insert(name);
    }
}

/// Changes to several keys that take effect together.
pub struct Transaction<'a> {
    shared: &'a Shared,
    storage: &'a GlobalStorage,
    staged: BTreeMap<String, Value>,
}

impl Transaction<'_> {
    /// The value under `key`, as changed by this transaction.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] if the value has another type.
    pub fn get<T: DeserializeOwned>(&self, key: &Key<T>) -> Result<Option<T>> {
        let name = self.storage.full(key.name());
        let value = self.staged.get(&*name).or_else(|| self.shared.slots.get(&*name).map(|slot| &*slot.value));
        value.map(|value| decode(key, value)).transpose()
    }

    /// Sets a value.
    ///
    /// # Errors
    /// If the value cannot be JSON.
    pub fn set<T: Serialize>(&mut self, key: &Key<T>, value: &T) -> Result<()> {
        self.staged.insert(self.storage.full(key.name()).into_owned(), encode(key, value)?);
        Ok(())
    }
}

pub(super) fn decode<T: DeserializeOwned>(key: &Key<T>, value: &Value) -> Result<T> {
    T::deserialize(value)
        .map_err(|e| Error::new(ErrorKind::Config, format!("the value under {key:?} has another type: {e}")))
}

pub(super) fn encode<T: Serialize>(key: &Key<T>, value: &T) -> Result<Value> {
    serde_json::to_value(value)
        .map_err(|e| Error::new(ErrorKind::Config, format!("the value for {key:?} is not JSON: {e}")))
}

impl fmt::Debug for GlobalStorage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.read().slots.keys()).finish() // values may be secret
    }
}

impl fmt::Debug for Transaction<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.staged.keys()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const N: Key<u32> = Key::new("n");
    const TEXT: Key<String> = Key::new("n");

    #[test]
    fn a_value_of_another_type_is_an_error_and_not_absent() {
        let storage = GlobalStorage::default();
        storage.set(&N, &1).expect("sets");
        assert_eq!(storage.get(&TEXT).expect_err("wrong type").kind(), ErrorKind::Config);
    }

    #[test]
    fn updates_of_parallel_writers_are_all_there() {
        let storage = GlobalStorage::default();
        std::thread::scope(|s| {
            for _ in 0..8 {
                s.spawn(|| (0..100).for_each(|_| assert!(storage.update(&N, |n| n.unwrap_or(0) + 1).is_ok())));
            }
        });
        assert_eq!(storage.get(&N).expect("reads"), Some(800));
    }

    #[test]
    fn a_failed_transaction_changes_nothing() {
        let storage = GlobalStorage::default();
        let result: Result<()> = storage.transaction(|tx| {
            tx.set(&N, &1)?;
            Err(Error::tool("no"))
        });
        assert!(result.is_err());
        assert_eq!(storage.get(&N).expect("reads"), None);
        assert!(storage.take_changes().is_empty());
    }

    #[test]
    fn scopes_do_not_see_each_other_and_the_whole_sees_all() {
        let storage = GlobalStorage::default();
        storage.scope("a").set(&N, &1).expect("sets");
        assert_eq!(storage.scope("b").get(&N).expect("reads"), None);
        assert_eq!(storage.scope("a").snapshot().keys().collect::<Vec<_>>(), ["n"]);
        assert_eq!(storage.snapshot().keys().collect::<Vec<_>>(), ["a/n"]);
    }

    #[test]
    fn a_restored_snapshot_reads_the_same_and_counts_as_unchanged() {
        let storage = GlobalStorage::default();
        storage.set(&N, &7).expect("sets");
        let restored = GlobalStorage::restore(storage.snapshot());
        assert_eq!(restored.get(&N).expect("reads"), Some(7));
        assert!(restored.take_changes().is_empty());
        assert_eq!(storage.take_changes().len(), 1);
    }
}
