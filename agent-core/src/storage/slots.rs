//! Values by name, which parallel calls share, and what of them may be kept.
//!
//! A change is seen by everybody at once. But a call that is cut off runs again from its start, so what it changed must not
//! be kept before its own result is. A value with changes of calls under way therefore has a list of its changes since, and
//! what is kept of it is what the changes of all others make of the value before the list. When no call of the list is under
//! way any more, the value itself is kept, and the list goes.
//!
//! # Locks
//! The lock of the slots is the last in the order: outbox of the tree, step of the run, shared storage, state. Nothing is
//! locked while it is held, and no closure of users runs under it: it is run on what is there, and again if that moved
//! meanwhile. What closures own may be dropped under it, so its `Drop` must not use the storage.

use std::{
    collections::{BTreeMap, BTreeSet},
    mem,
    ops::Bound,
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
    thread,
};

use serde_json::Value;

use super::{
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
    /// Copied when it is written while somebody has a snapshot.
    slots: Arc<ByName>,
    /// Those of which other values are kept than when changes were last taken.
    changed: BTreeSet<Arc<str>>,
    /// Those with changes of calls under way.
    open: BTreeSet<Arc<str>>,
    /// Counts changes, so that no version is ever given twice.
    clock: u64,
}

/// Whether values were set.
pub(super) enum Outcome {
    Set,
    /// One of them had changed.
    Moved {
        /// Its name, if this thread changed it.
        here: Option<String>,
    },
}

/// What runs to find a new value may not change the old one: it would begin anew for ever.
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

    /// All slots as they are now.
    pub(super) fn snapshot(&self) -> Arc<ByName> {
        self.read().slots.clone()
    }

    /// What `pick` finds in the slots below `prefix`, by the rest of their names.
    pub(super) fn values(&self, prefix: &str, pick: impl Fn(&Slot) -> Option<&Arc<Value>>) -> BTreeMap<String, Value> {
        let slots = self.snapshot();
        let rest = |name: &str| name[prefix.len()..].to_owned();
        below(&slots, prefix).filter_map(|(name, slot)| Some((rest(name), (**pick(slot)?).clone()))).collect()
    }

    /// True if there is no value below `prefix`.
    pub(super) fn is_empty(&self, prefix: &str) -> bool {
        !below(&self.read().slots, prefix).any(|(_, slot)| slot.value.is_some())
    }

    /// Changes a value and gives the new one.
    pub(super) fn change(&self, writer: Option<&Arc<Writer>>, name: &str, change: &Change) -> Result<Held> {
        loop {
            let (before, kept, touched) = self.read().slots.get(name).map(Slot::now).unwrap_or_default();
            let value = change.apply(&before)?;
            let kept = kept.filter(|_| Writer::of(writer).is_ok_and(|writer| writer.is_none()));
            let kept = kept.and_then(|kept| change.apply_again(&kept)).unwrap_or_else(|| value.clone());
            let mut inner = self.write();
            let slot = inner.slots.get(name);
            if slot.map_or(0, |slot| slot.touched) == touched {
                inner.put(name, Writer::of(writer)?, change.clone(), value.clone(), kept);
                return Ok(value);
            }
            if slot.is_some_and(|slot| slot.version > touched && slot.by == thread::current().id()) {
                return Err(changes_itself(name));
            }
        }
    }

    /// Sets values, all or none: if the values `seen` still have these versions. Version 0 is that of one that is not there.
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
                let here = slot.is_some_and(|slot| slot.by == thread::current().id());
                return Ok(Outcome::Moved { here: here.then(|| name.to_owned()) });
            }
        }
        let writer = Writer::of(writer)?;
        for (name, value) in new {
            inner.put(name.as_ref(), writer.clone(), Change::Set(value.clone()), value.clone(), value);
        }
        Ok(Outcome::Set)
    }

    /// Sets a value, or removes it; true if there was one.
    pub(super) fn set(&self, writer: Option<&Arc<Writer>>, name: &str, value: Held) -> Result<bool> {
        let mut inner = self.write();
        let slot = inner.slots.get(name);
        let was_there = slot.is_some_and(|slot| slot.value.is_some());
        // What a call under way removed may come back.
        if value.is_some() || slot.is_some_and(|slot| !slot.is_gone()) {
            inner.put(name, Writer::of(writer)?, Change::Set(value.clone()), value.clone(), value);
        }
        Ok(was_there)
    }

    /// Sets a value as it was recorded. If that is `told_already`, it is no change.
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

    /// Of which values another is kept than when this was last called, and which; none where one was removed.
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

    /// How the slots are to be when the changes of `writer` are kept, or taken back. Runs code of users.
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
    /// As [`Slot::put`].
    fn put(&mut self, name: &str, writer: Option<Arc<Writer>>, change: Change, value: Held, kept: Held) {
        self.clock += 1;
        let name: Arc<str> = name.into();
        let into = if writer.is_some() { &mut self.open } else { &mut self.changed };
        into.insert(name.clone());
        let slot = Arc::make_mut(&mut self.slots).entry(name).or_insert_with(Slot::empty);
        slot.put(self.clock, writer, change, value, kept);
    }
}

/// How slots are to be when a writer has ended.
pub(super) struct Ending<'a> {
    slots: &'a Slots,
    /// With when each was last touched.
    after: Vec<(Arc<str>, u64, Slot)>,
    keeps: bool,
}

/// Slots that are as they were when the [`Ending`] was made, and stay so.
pub(super) struct Ready<'a> {
    inner: RwLockWriteGuard<'a, Inner>,
    ending: Ending<'a>,
}

impl<'a> Ending<'a> {
    pub(super) fn is_empty(&self) -> bool {
        self.after.is_empty()
    }

    /// What is kept of the values then.
    pub(super) fn values(&self) -> Vec<NewValue> {
        let value = |slot: &Slot| slot.kept().map(|value| (**value).clone());
        self.after.iter().map(|(name, _, slot)| (name.to_string(), value(slot))).collect()
    }

    /// Locks the slots, unless one was changed meanwhile.
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
