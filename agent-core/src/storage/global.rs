//! [`GlobalStorage`]: values that a whole hierarchy of agents shares.

use std::{borrow::Cow, collections::BTreeMap, fmt, sync::Arc};

use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use super::{
    Key, Transaction,
    slot::{Change, Held, Slot},
    slots::{Outcome, Slots},
    writer::Writer,
};
use crate::error::{Error, ErrorKind, Result};

/// Key-value storage shared by a whole hierarchy of agents. Cheap to clone; all clones share the
/// same data. Safe under concurrent sub-agents.
///
/// Values are stored as JSON, so that they can be journalled, restored in another process and read
/// by another program. A value whose type differs from the key's is an error; it is never treated
/// as absent.
///
/// Changes made by a tool call are visible to all readers at once, and persisted together with the
/// call's result. A call that is aborted, or asks a question, restarts from its beginning, and its
/// changes are rolled back. An [`update`](Self::update) that followed a rolled-back change is
/// computed again without it. Counts are therefore exact, with each call counted once; but a number
/// that a call took from a count may be taken again after a crash. Unique values must be derived
/// from [`ToolRequest::idempotency_key`](crate::ToolRequest::idempotency_key).
///
/// [`compare_and_set`](Self::compare_and_set) and [`transaction`](Self::transaction) set plain values,
/// which are not computed again: a value that one of them derived from an uncommitted change of
/// another call remains when that change is rolled back. Use [`update`](Self::update) for
/// counts that concurrent calls share.
///
/// No lock is held while user closures run. They may run more than once, so they must only compute
/// the new value.
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
/// // A version detects that another writer was faster.
/// let (_, version) = storage.get_versioned(&DONE)?.expect("was set");
/// assert!(storage.compare_and_set(&DONE, version, &1)?);
/// assert!(!storage.compare_and_set(&DONE, version, &2)?);
/// # Ok::<(), agent_core::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct GlobalStorage {
    slots: Arc<Slots>,
    /// Prefix of every key of a scoped view.
    prefix: Arc<str>,
    /// The call with which changes are committed.
    writer: Option<Arc<Writer>>,
}

impl GlobalStorage {
    /// Creates a storage with these values, as returned by [`snapshot`](Self::snapshot).
    pub fn restore(values: BTreeMap<String, Value>) -> Self {
        Self { slots: Arc::new(Slots::restore(values)), ..Self::default() }
    }

    /// Returns all values of this view, by key. Keys of a scope are `scope/key`; a `/` within a
    /// name is escaped as `~1`, and a `~` as `~0`.
    pub fn snapshot(&self) -> BTreeMap<String, Value> {
        self.slots.values(&self.prefix, Slot::value)
    }

    /// Like [`snapshot`](Self::snapshot), with committed values only: without the changes of
    /// running calls.
    pub fn kept(&self) -> BTreeMap<String, Value> {
        self.slots.values(&self.prefix, Slot::kept)
    }

    /// Returns a view with a separate key space: in a [`snapshot`](Self::snapshot), `total` of
    /// `scope("billing")` is `billing/total`.
    ///
    /// ```
    /// use agent_core::{GlobalStorage, Key};
    ///
    /// let storage = GlobalStorage::default();
    /// storage.scope("billing").set(&Key::new("total"), &1)?;
    /// storage.set(&Key::new("billing/total"), &2)?;
    /// assert_eq!(storage.scope("billing").get(&Key::<u32>::new("total"))?, Some(1));
    /// assert_eq!(storage.snapshot().into_keys().collect::<Vec<_>>(), ["billing/total", "billing~1total"]);
    /// # Ok::<(), agent_core::Error>(())
    /// ```
    #[must_use]
    pub fn scope(&self, name: &str) -> Self {
        Self { prefix: [&*self.prefix, &*segment(name), "/"].concat().into(), ..self.clone() }
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
        self.slots.is_empty(&self.prefix)
    }

    /// Returns the value under `key`, if there is one.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] if the value has another type.
    pub fn get<T: DeserializeOwned>(&self, key: &Key<T>) -> Result<Option<T>> {
        Ok(self.get_versioned(key)?.map(|(value, _)| value))
    }

    /// Like [`get`](Self::get), with the version for [`compare_and_set`](Self::compare_and_set).
    /// Versions are unique within a storage, even if one value was removed before another was set.
    ///
    /// # Errors
    /// Those of [`get`](Self::get).
    pub fn get_versioned<T: DeserializeOwned>(&self, key: &Key<T>) -> Result<Option<(T, u64)>> {
        let found = self.slots.get(&self.full(key.name()));
        found.map(|(value, version)| Ok((decode(key, &value)?, version))).transpose()
    }

    /// Returns the JSON under a name that is only known at run time.
    pub fn get_value(&self, name: &str) -> Option<Arc<Value>> {
        self.slots.get(&self.full(name)).map(|(value, _)| value)
    }

    /// Sets a value.
    ///
    /// # Errors
    /// If the value cannot be serialised as JSON; [`ErrorKind::Cancelled`] if a remaining task of
    /// an aborted call calls this.
    pub fn set<T: Serialize>(&self, key: &Key<T>, value: &T) -> Result<()> {
        let value = Some(Arc::new(encode(key, value)?));
        self.slots.set(self.writer.as_ref(), &self.full(key.name()), value).map(drop)
    }

    /// Sets JSON under a name that is only known at run time. Ignored if a remaining task of an
    /// aborted call calls this.
    pub fn set_value(&self, name: &str, value: Value) {
        let _ = self.slots.set(self.writer.as_ref(), &self.full(name), Some(Arc::new(value)));
    }

    /// Sets and removes values as they were recorded. With `told_already`, another run's entries
    /// contain them, and they do not count as changes of this one.
    pub(crate) fn set_all(&self, values: BTreeMap<String, Option<Value>>, told_already: bool) {
        for (name, value) in values {
            self.slots.set_recorded(&name, value.map(Arc::new), told_already);
        }
    }

    /// Removes a value. Returns `true` if there was one. Ignored if a remaining task of an aborted
    /// call calls this.
    pub fn remove<T>(&self, key: &Key<T>) -> bool {
        self.slots.set(self.writer.as_ref(), &self.full(key.name()), None).unwrap_or(false)
    }

    /// Atomically reads, changes and writes a value. Returns the new value.
    ///
    /// `change` may run more than once: again if another writer was faster, and again without the
    /// uncommitted changes of other calls. Concurrent calls with commutative changes, such as
    /// counts and sets, therefore never lose a change and never apply one twice.
    ///
    /// # Errors
    /// Those of [`get`](Self::get) and [`set`](Self::set), and [`ErrorKind::Config`] if `change`
    /// itself changes this value; nothing is changed then.
    pub fn update<T>(&self, key: &Key<T>, change: impl Fn(Option<T>) -> T + Send + Sync + 'static) -> Result<T>
    where
        T: Serialize + DeserializeOwned + 'static,
    {
        let key = *key;
        let change = Change::update(move |value| {
            let value = value.map(|value| decode(&key, value)).transpose()?;
            encode(&key, &change(value))
        });
        let new = self.slots.change(self.writer.as_ref(), &self.full(key.name()), &change)?;
        decode(&key, new.as_deref().unwrap_or(&Value::Null))
    }

    /// Sets the value if its version is still `version`. Returns `true` if it was. Version 0 means
    /// that the value is absent.
    ///
    /// # Errors
    /// Those of [`set`](Self::set).
    pub fn compare_and_set<T: Serialize>(&self, key: &Key<T>, version: u64, value: &T) -> Result<bool> {
        let value: Held = Some(Arc::new(encode(key, value)?));
        let name = self.full(key.name());
        let outcome = self.slots.set_if(self.writer.as_ref(), [(&*name, version)], [(&*name, value)])?;
        Ok(matches!(outcome, Outcome::Set))
    }

    /// Changes several keys atomically. If `body` fails, nothing is changed. `body` reads a
    /// snapshot of the storage, and runs again if another writer has changed a value that it read.
    ///
    /// # Errors
    /// Those of `body`, and those of [`update`](Self::update).
    pub fn transaction<R>(&self, body: impl Fn(&mut Transaction<'_>) -> Result<R>) -> Result<R> {
        loop {
            let mut transaction = Transaction::new(self);
            let result = body(&mut transaction)?;
            if transaction.commit()? {
                return Ok(result);
            }
        }
    }

    /// True if there are committed changes to take.
    pub(crate) fn has_changes(&self) -> bool {
        self.slots.has_changes()
    }

    /// Takes the keys and committed values that changed since the last call; `None` where a value
    /// was removed. Excludes the changes of running calls.
    ///
    /// The journal takes them at the end of each step.
    pub(crate) fn take_changes(&self) -> BTreeMap<String, Option<Value>> {
        let changes = self.slots.take_changes().into_iter();
        changes.map(|(name, value)| (name.to_string(), value.map(Arc::unwrap_or_clone))).collect()
    }

    /// Returns the storage as `writer` sees it; without a writer, changes are the run's.
    pub(super) fn written_by(&self, writer: Option<Arc<Writer>>) -> Self {
        Self { writer, ..self.clone() }
    }

    pub(super) fn slots(&self) -> &Slots {
        &self.slots
    }

    pub(super) fn writer(&self) -> Option<&Arc<Writer>> {
        self.writer.as_ref()
    }

    pub(super) fn full<'n>(&self, name: &'n str) -> Cow<'n, str> {
        let name = segment(name);
        if self.prefix.is_empty() { name } else { [&*self.prefix, &*name].concat().into() }
    }
}

/// Escapes a name as in a JSON pointer, so that only scopes contain a `/`.
fn segment(name: &str) -> Cow<'_, str> {
    if name.contains(['~', '/']) { name.replace('~', "~0").replace('/', "~1").into() } else { name.into() }
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
        f.debug_set().entries(self.slots.snapshot().keys()).finish() // values may be secret
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
