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
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
    thread::{self, ThreadId},
};

use serde_json::Value;

use super::writer::Writer;
use crate::{Error, Result};

/// A value, if there is one.
pub(super) type Held = Option<Arc<Value>>;

type Update = dyn Fn(Option<&Value>) -> Result<Value> + Send + Sync;

/// A change of one value.
#[derive(Clone)]
pub(super) enum Change {
    /// To this, whatever it was.
    Set(Held),
    /// To what this makes of it.
    Update(Arc<Update>),
}

impl Change {
    pub(super) fn update(change: impl Fn(Option<&Value>) -> Result<Value> + Send + Sync + 'static) -> Self {
        Self::Update(Arc::new(change))
    }

    fn apply(&self, value: &Held) -> Result<Held> {
        match self {
            Self::Set(new) => Ok(new.clone()),
            Self::Update(change) => change(value.as_deref()).map(|new| Some(Arc::new(new))),
        }
    }

    /// Applies it to a value that it was not made for; none if it cannot be.
    fn apply_again(&self, value: &Held) -> Option<Held> {
        catch_unwind(AssertUnwindSafe(|| self.apply(value))).ok()?.ok()
    }
}

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

/// One value. One that was removed stays, without a value, until that is kept.
#[derive(Clone)]
pub(super) struct Slot {
    value: Held,
    /// When the value last changed.
    version: u64,
    /// When anything here last changed.
    touched: u64,
    /// Who changed the value.
    by: ThreadId,
    open: Option<Box<Open>>,
}

/// The changes since the first of a call under way.
#[derive(Clone)]
struct Open {
    /// The value before them.
    base: Held,
    /// The value without those of calls under way.
    kept: Held,
    /// In their order; those of calls under way with their writer.
    changes: Vec<(Option<Arc<Writer>>, Change)>,
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

impl Slot {
    fn empty() -> Self {
        Self { value: None, version: 0, touched: 0, by: thread::current().id(), open: None }
    }

    /// The value and its version, if there is one.
    pub(super) fn get(&self) -> Option<(&Arc<Value>, u64)> {
        Some((self.value.as_ref()?, self.version))
    }

    /// What is to be kept of it.
    pub(super) fn kept(&self) -> Option<&Arc<Value>> {
        self.open.as_ref().map_or(&self.value, |open| &open.kept).as_ref()
    }

    /// The value, what is kept of it if that is another, and when it was touched.
    fn now(&self) -> (Held, Option<Held>, u64) {
        (self.value.clone(), self.open.as_ref().map(|open| open.kept.clone()), self.touched)
    }

    /// True if nothing is left of it.
    fn is_gone(&self) -> bool {
        self.value.is_none() && self.open.is_none()
    }

    fn is_of(&self, writer: &Arc<Writer>) -> bool {
        self.open.iter().flat_map(|open| &open.changes).any(|(by, _)| is(by, writer))
    }

    /// The slot when the changes of `writer` are kept.
    fn keeping(mut self, writer: &Arc<Writer>) -> Self {
        let Some(open) = &mut self.open else { return self };
        open.changes.iter_mut().filter(|(by, _)| is(by, writer)).for_each(|(by, _)| *by = None);
        let Some(first) = open.changes.iter().position(|(by, _)| by.is_some()) else {
            self.open = None;
            return self;
        };
        if let Some(base) = replay(&open.base, &open.changes[..first]) {
            open.base = base;
            open.changes.drain(..first);
        }
        // What cannot be without the changes of a call under way is kept with them.
        let ended = open.changes.iter().filter(|(by, _)| by.is_none());
        open.kept = replay(&open.base, ended).unwrap_or_else(|| self.value.clone());
        self
    }

    /// The slot without the changes of `writer`.
    fn without(mut self, writer: &Arc<Writer>) -> Self {
        let Some(open) = &mut self.open else { return self };
        open.changes.retain(|(by, _)| !is(by, writer));
        if open.changes.iter().all(|(by, _)| by.is_none()) {
            self.value = open.kept.take();
            self.open = None;
        } else if let Some(value) = replay(&open.base, &open.changes) {
            self.value = value;
        }
        self
    }
}

/// What runs to find a new value may not change the old one: it would begin anew for ever.
pub(super) fn changes_itself(name: &str) -> Error {
    Error::config(format!(
        "what is to change the value '{name}' changes that value itself; let it give the new one instead"
    ))
}

fn is(by: &Option<Arc<Writer>>, writer: &Arc<Writer>) -> bool {
    by.as_ref().is_some_and(|by| Arc::ptr_eq(by, writer))
}

fn replay<'a>(base: &Held, changes: impl IntoIterator<Item = &'a (Option<Arc<Writer>>, Change)>) -> Option<Held> {
    changes.into_iter().try_fold(base.clone(), |value, (_, change)| change.apply_again(&value))
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

    /// Of which values another is kept than when this was last called, and which; none where one was removed.
    pub(super) fn take_changes(&self) -> Vec<(Arc<str>, Held)> {
        if self.read().changed.is_empty() {
            return Vec::new();
        }
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

impl Inner {
    /// Sets a value by a change of `writer`, or of nobody who can be cut off: `kept` is what is then kept of it.
    fn put(&mut self, name: &str, writer: Option<Arc<Writer>>, change: Change, value: Held, kept: Held) {
        self.clock += 1;
        let name: Arc<str> = name.into();
        let slot = Arc::make_mut(&mut self.slots).entry(name.clone()).or_insert_with(Slot::empty);
        let before = mem::replace(&mut slot.value, value);
        (slot.version, slot.touched, slot.by) = (self.clock, self.clock, thread::current().id());
        if writer.is_some() && slot.open.is_none() {
            slot.open = Some(Box::new(Open { base: before.clone(), kept: before, changes: Vec::new() }));
            self.open.insert(name.clone());
        }
        if writer.is_none() {
            self.changed.insert(name);
        }
        let Some(open) = &mut slot.open else { return };
        if writer.is_none() {
            open.kept = kept;
        }
        if let Change::Set(_) = change {
            // Nothing is left of what the same writer changed before.
            open.changes.retain(|(by, _)| by.as_ref().map(Arc::as_ptr) != writer.as_ref().map(Arc::as_ptr));
        }
        open.changes.push((writer, change));
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
