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

/// Values shared by reference through a whole hierarchy of agents; cheap to clone, and safe under parallel sub-agents.
///
/// Values are kept as JSON, so that they can be journalled, restored in another process and read by another program. A
/// value of another type than the key's is an error, never "not there".
///
/// What a tool's call changes is seen by everybody at once, and kept together with the call's result. A call that is cut
/// off, or asks a question, is entered again from its start: what it had changed is taken back. An
/// [`update`](Self::update) that is then left without an earlier one is made again without it. So counts come out right,
/// each call once; but a number that a call drew from a count may be drawn again after a crash. What must be unique comes from
/// [`ToolRequest::idempotency_key`](crate::ToolRequest::idempotency_key).
///
/// No lock is held while your closures run. They may be run more than once, so let them do nothing but find the new value.
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
    slots: Arc<Slots>,
    /// Put before every key of a scoped view.
    prefix: Arc<str>,
    /// The call that changes are kept with.
    writer: Option<Arc<Writer>>,
}

impl GlobalStorage {
    /// A storage with these values: what [`snapshot`](Self::snapshot) gave.
    pub fn restore(values: BTreeMap<String, Value>) -> Self {
        Self { slots: Arc::new(Slots::restore(values)), ..Self::default() }
    }

    /// All values of this view, by key. Keys of a scope are `scope/key`; a `/` within a name is `~1`, and a `~` is `~0`.
    pub fn snapshot(&self) -> BTreeMap<String, Value> {
        self.slots.values(&self.prefix, Slot::value)
    }

    /// As [`snapshot`](Self::snapshot), without what calls under way changed: what a journal would have now.
    pub fn kept(&self) -> BTreeMap<String, Value> {
        self.slots.values(&self.prefix, Slot::kept)
    }

    /// A view whose keys are apart from all others: in a [`snapshot`](Self::snapshot), `total` of `scope("billing")` is
    /// `billing/total`.
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

    /// The value under `key`, if there is one.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] if the value has another type.
    pub fn get<T: DeserializeOwned>(&self, key: &Key<T>) -> Result<Option<T>> {
        Ok(self.get_versioned(key)?.map(|(value, _)| value))
    }

    /// As [`get`](Self::get), with the version for [`compare_and_set`](Self::compare_and_set). No two values of a storage ever
    /// have the same version, also if one was removed before the other was set.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn get_versioned<T: DeserializeOwned>(&self, key: &Key<T>) -> Result<Option<(T, u64)>> {
        let found = self.slots.get(&self.full(key.name()));
        found.map(|(value, version)| Ok((decode(key, &value)?, version))).transpose()
    }

    /// The JSON under a name that is only known at run time.
    pub fn get_value(&self, name: &str) -> Option<Arc<Value>> {
        self.slots.get(&self.full(name)).map(|(value, _)| value)
    }

    /// Sets a value.
    ///
    /// # Errors
    /// If the value cannot be JSON; [`ErrorKind::Cancelled`] if this is what a call left behind that was cut off.
    pub fn set<T: Serialize>(&self, key: &Key<T>, value: &T) -> Result<()> {
        let value = Some(Arc::new(encode(key, value)?));
        self.slots.set(self.writer.as_ref(), &self.full(key.name()), value).map(drop)
    }

    /// Sets JSON under a name that is only known at run time. What is left of a call that was cut off sets nothing.
    pub fn set_value(&self, name: &str, value: Value) {
        let _ = self.slots.set(self.writer.as_ref(), &self.full(name), Some(Arc::new(value)));
    }

    /// Sets and removes values as they were recorded. Those that another run's entries tell are no change of this one.
    pub(crate) fn set_all(&self, values: BTreeMap<String, Option<Value>>, told_already: bool) {
        for (name, value) in values {
            self.slots.set_recorded(&name, value.map(Arc::new), told_already);
        }
    }

    /// Removes a value; true if there was one. What is left of a call that was cut off removes nothing.
    pub fn remove<T>(&self, key: &Key<T>) -> bool {
        self.slots.set(self.writer.as_ref(), &self.full(key.name()), None).unwrap_or(false)
    }

    /// Reads, changes and writes as one step: no other writer comes between. Returns the new value.
    ///
    /// `change` may be run more than once: again if somebody else was faster, and again without what another call changed
    /// that is not kept yet. Parallel calls whose changes come to the same in any order, as with counts and sets, so never
    /// lose one and never make one twice.
    ///
    /// # Errors
    /// As [`get`](Self::get) and [`set`](Self::set), and [`ErrorKind::Config`] if `change` itself changes this value; nothing
    /// is changed then.
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

    /// Sets the value if its version is still `version`; true if it was. Version 0 means "not there yet".
    ///
    /// # Errors
    /// As [`set`](Self::set).
    pub fn compare_and_set<T: Serialize>(&self, key: &Key<T>, version: u64, value: &T) -> Result<bool> {
        let value: Held = Some(Arc::new(encode(key, value)?));
        let name = self.full(key.name());
        let outcome = self.slots.set_if(self.writer.as_ref(), [(&*name, version)], [(&*name, value)])?;
        Ok(matches!(outcome, Outcome::Set))
    }

    /// Changes several keys as one step. If `body` fails, nothing is changed. It sees the storage as it was at its start, and
    /// is run again if somebody else changed meanwhile what it has read.
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

    /// True if there are changes to be taken.
    pub(crate) fn has_changes(&self) -> bool {
        self.slots.has_changes()
    }

    /// The keys of which another value is kept than when this was last called, with those values; `None` where one was removed.
    /// What calls under way changed is not among them.
    ///
    /// The journal takes them with the end of each step.
    pub(crate) fn take_changes(&self) -> BTreeMap<String, Option<Value>> {
        let changes = self.slots.take_changes().into_iter();
        changes.map(|(name, value)| (name.to_string(), value.map(Arc::unwrap_or_clone))).collect()
    }

    /// The storage as the writer `writer` has it; none writes as the run itself.
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

/// A name as a part of a key: as in a JSON pointer, so that only scopes have a `/` after them.
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
