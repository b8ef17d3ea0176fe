//! Named values shared by concurrent calls, with the uncommitted changes of running calls.
//!
//! All readers see a change at once. But an aborted call restarts from its beginning, so its
//! changes must not be committed before its result is. A value with changes of running calls
//! therefore has a list of its changes since; the committed value is the value before the list with
//! the changes of all other writers applied. Once no call of the list is running any more, the
//! value itself is committed and the list is dropped.
//!
//! # Locks
//! The lock of the slots is the last in the order: outbox of the tree, step of the run, shared
//! storage, state. No other lock is taken while it is held, and no user closure runs under it: a
//! closure runs on a copy of the value, and again if the value changed meanwhile. Data owned by
//! closures may be dropped under the lock, so its `Drop` must not use the storage.

use std::{
    collections::{BTreeMap, BTreeSet},
    mem,
    ops::Bound,
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
};

use serde_json::Value;

use super::{
    nested::{self, Nested},
    slot::{Change, Held, Slot},
    writer::{NewValue, Writer},
};
use crate::error::{Error, Result};

/// Values by name.
#[derive(Default)]
pub(super) struct Slots(RwLock<Inner>);

pub(super) type ByName = BTreeMap<Arc<str>, Slot>;

#[derive(Default)]
struct Inner {
    /// Copied on write while a snapshot exists.
    slots: Arc<ByName>,
    /// Names of the values whose committed value changed since changes were last taken.
    changed: BTreeSet<Arc<str>>,
    /// Names of the values with changes of running calls.
    open: BTreeSet<Arc<str>>,
    /// Logical clock: counts changes, so that versions are unique.
    clock: u64,
}

/// Outcome of a conditional write.
pub(super) enum Outcome {
    Set,
    /// The value of this name had changed.
    Moved(String),
}

/// Error: a closure that computes a new value changes the old value itself, so that it would
/// restart forever.
pub(super) fn changes_itself(name: &str) -> Error {
    Error::config(format!(
        "what is to change the value '{name}' changes that value itself; let it give the new one instead"
    ))
}

impl Slots {
    pub(super) fn restore(values: impl IntoIterator<Item = (String, Value)>) -> Self {
        let slot = |value| Slot { value: Some(Arc::new(value)), version: 1, touched: 1, ..Slot::empty() };
        let slots = values.into_iter().map(|(name, value)| (name.into(), slot(value))).collect();
        Self(RwLock::new(Inner { slots: Arc::new(slots), clock: 1, ..Inner::default() }))
    }

    pub(super) fn get(&self, name: &str) -> Option<(Arc<Value>, u64)> {
        self.read().slots.get(name)?.get().map(|(value, version)| (value.clone(), version))
    }

    /// Returns a snapshot of all slots.
    pub(super) fn snapshot(&self) -> Arc<ByName> {
        self.read().slots.clone()
    }

    /// Returns the values that `pick` selects from the slots whose names begin with `prefix`, by
    /// the rest of their names.
    pub(super) fn values(&self, prefix: &str, pick: impl Fn(&Slot) -> Option<&Arc<Value>>) -> BTreeMap<String, Value> {
        let slots = self.snapshot();
        let rest = |name: &str| name[prefix.len()..].to_owned();
        below(&slots, prefix).filter_map(|(name, slot)| Some((rest(name), (**pick(slot)?).clone()))).collect()
    }

    /// True if there is no value whose name begins with `prefix`.
    pub(super) fn is_empty(&self, prefix: &str) -> bool {
        !below(&self.read().slots, prefix).any(|(_, slot)| slot.value.is_some())
    }

    /// Changes a value and returns the new one.
    pub(super) fn change(&self, writer: Option<&Arc<Writer>>, name: &str, change: &Change) -> Result<Held> {
        loop {
            let (before, kept, touched) = self.read().slots.get(name).map(Slot::now).unwrap_or_default();
            let nested = Nested::enter(self);
            let value = change.apply(&before)?;
            let kept = kept.filter(|_| Writer::of(writer).is_ok_and(|writer| writer.is_none()));
            let kept = kept.and_then(|kept| change.apply_again(&kept)).unwrap_or_else(|| value.clone());
            let mut inner = self.write();
            let slot = inner.slots.get(name);
            if slot.map_or(0, |slot| slot.touched) == touched {
                inner.put(name, Writer::of(writer)?, change.clone(), value.clone(), kept);
                drop(nested);
                nested::changed(self, name);
                return Ok(value);
            }
            if nested.has_changed(name) {
                return Err(changes_itself(name));
            }
        }
    }

    /// Sets values atomically if the values `seen` still have these versions. Version 0 means that
    /// the value is absent.
    pub(super) fn set_if<'a>(
        &self,
        writer: Option<&Arc<Writer>>,
        seen: impl IntoIterator<Item = (&'a str, u64)>,
        new: impl IntoIterator<Item = (impl AsRef<str>, Held)>,
    ) -> Result<Outcome> {
        let mut inner = self.write();
        for (name, version) in seen {
            let slot = inner.slots.get(name);
            if slot.and_then(Slot::get).map_or(0, |(_, version)| version) != version {
                return Ok(Outcome::Moved(name.to_owned()));
            }
        }
        let writer = Writer::of(writer)?;
        for (name, value) in new {
            inner.put(name.as_ref(), writer.clone(), Change::Set(value.clone()), value.clone(), value);
            nested::changed(self, name.as_ref());
        }
        Ok(Outcome::Set)
    }

    /// Sets or removes a value. Returns `true` if there was one.
    pub(super) fn set(&self, writer: Option<&Arc<Writer>>, name: &str, value: Held) -> Result<bool> {
        let mut inner = self.write();
        let slot = inner.slots.get(name);
        let was_there = slot.is_some_and(|slot| slot.value.is_some());
        // A value that a running call removed may be restored.
        if value.is_some() || slot.is_some_and(|slot| !slot.is_gone()) {
            inner.put(name, Writer::of(writer)?, Change::Set(value.clone()), value.clone(), value);
            nested::changed(self, name);
        }
        Ok(was_there)
    }

    /// Sets a recorded value. With `told_already`, it does not count as a change.
    pub(super) fn set_recorded(&self, name: &str, value: Held, told_already: bool) {
        let mut inner = self.write();
        let is_change = !told_already || inner.changed.contains(name);
        inner.put(name, None, Change::Set(value.clone()), value.clone(), value);
        if !is_change {
            inner.changed.remove(name);
        }
    }

    pub(super) fn has_changes(&self) -> bool {
        !self.read().changed.is_empty()
    }

    /// Takes the names and committed values that changed since the last call; `None` where a value
    /// was removed.
    pub(super) fn take_changes(&self) -> Vec<(Arc<str>, Held)> {
        let mut inner = self.write();
        let inner = &mut *inner;
        let slots = Arc::make_mut(&mut inner.slots);
        let taken = mem::take(&mut inner.changed).into_iter().map(|name| {
            let kept = slots.get(&name).and_then(Slot::kept).cloned();
            if slots.get(&name).is_some_and(Slot::is_gone) {
                slots.remove(&name);
            }
            (name, kept)
        });
        taken.collect()
    }

    /// Computes the slots after the changes of `writer` are committed or rolled back. Runs user
    /// code.
    pub(super) fn end(&self, writer: &Arc<Writer>, keeps: bool) -> Ending<'_> {
        let mine: Vec<_> = {
            let inner = self.read();
            let slots = inner.open.iter().filter_map(|name| Some((name.clone(), inner.slots.get(name)?)));
            slots.filter(|(_, slot)| slot.is_of(writer)).map(|(name, slot)| (name, slot.clone())).collect()
        };
        let after = |slot: Slot| if keeps { slot.keeping(writer) } else { slot.without(writer) };
        let after = mine.into_iter().map(|(name, slot)| (name, slot.touched, after(slot))).collect();
        Ending { slots: self, after, keeps }
    }

    fn read(&self) -> RwLockReadGuard<'_, Inner> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Inner> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The slots whose names begin with `prefix`.
fn below<'s>(slots: &'s ByName, prefix: &str) -> impl Iterator<Item = (&'s Arc<str>, &'s Slot)> {
    let from = slots.range::<str, _>((Bound::Included(prefix), Bound::Unbounded));
    from.take_while(move |(name, _)| name.starts_with(prefix))
}

impl Inner {
    /// Like [`Slot::put`].
    fn put(&mut self, name: &str, writer: Option<Arc<Writer>>, change: Change, value: Held, kept: Held) {
        self.clock += 1;
        let name: Arc<str> = name.into();
        let into = if writer.is_some() { &mut self.open } else { &mut self.changed };
        into.insert(name.clone());
        let slot = Arc::make_mut(&mut self.slots).entry(name).or_insert_with(Slot::empty);
        slot.put(self.clock, writer, change, value, kept);
    }
}

/// The slots as they will be once a writer has ended.
pub(super) struct Ending<'a> {
    slots: &'a Slots,
    /// Name, expected time of the last change, and new content of each slot.
    after: Vec<(Arc<str>, u64, Slot)>,
    keeps: bool,
}

/// Locked slots, verified to be unchanged since the [`Ending`] was computed.
pub(super) struct Ready<'a> {
    inner: RwLockWriteGuard<'a, Inner>,
    ending: Ending<'a>,
}

impl<'a> Ending<'a> {
    pub(super) fn is_empty(&self) -> bool {
        self.after.is_empty()
    }

    /// The committed values afterwards.
    pub(super) fn values(&self) -> Vec<NewValue> {
        let value = |slot: &Slot| slot.kept().map(|value| (**value).clone());
        self.after.iter().map(|(name, _, slot)| (name.to_string(), value(slot))).collect()
    }

    /// Locks the slots; `None` if one was changed meanwhile.
    pub(super) fn lock(self) -> Option<Ready<'a>> {
        let inner = self.slots.write();
        let is_same = |(name, touched, _): &(Arc<str>, u64, Slot)| {
            inner.slots.get(name).is_some_and(|slot| slot.touched == *touched)
        };
        let is_ready = self.after.iter().all(is_same);
        is_ready.then_some(Ready { inner, ending: self })
    }
}

impl Ready<'_> {
    pub(super) fn apply(mut self) {
        let inner = &mut *self.inner;
        let slots = Arc::make_mut(&mut inner.slots);
        for (name, _, mut slot) in self.ending.after {
            inner.clock += 1;
            slot.touched = inner.clock;
            if slot.open.is_none() {
                inner.open.remove(&name);
            }
            if self.ending.keeps {
                inner.changed.insert(name.clone());
            } else {
                slot.version = inner.clock;
            }
            if slot.is_gone() && !inner.changed.contains(&name) {
                slots.remove(&name);
            } else {
                slots.insert(name, slot);
            }
        }
    }
}
