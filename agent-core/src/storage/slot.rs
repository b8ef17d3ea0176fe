//! One value shared by concurrent calls, with its uncommitted changes.

use std::{
    mem,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use serde_json::Value;

use super::writer::Writer;
use crate::error::Result;

/// A value; `None` if it is absent.
pub(super) type Held = Option<Arc<Value>>;

type Update = dyn Fn(Option<&Value>) -> Result<Value> + Send + Sync;

/// A change of one value.
#[derive(Clone)]
pub(super) enum Change {
    /// Replace the value.
    Set(Held),
    /// Compute the value from the current one.
    Update(Arc<Update>),
}

impl Change {
    pub(super) fn update(change: impl Fn(Option<&Value>) -> Result<Value> + Send + Sync + 'static) -> Self {
        Self::Update(Arc::new(change))
    }

    pub(super) fn apply(&self, value: &Held) -> Result<Held> {
        match self {
            Self::Set(new) => Ok(new.clone()),
            Self::Update(change) => change(value.as_deref()).map(|new| Some(Arc::new(new))),
        }
    }

    /// Applies the change to a value other than the original one; `None` if it fails.
    pub(super) fn apply_again(&self, value: &Held) -> Option<Held> {
        catch_unwind(AssertUnwindSafe(|| self.apply(value))).ok()?.ok()
    }
}

/// One value. A removed value stays as an empty slot until the removal is committed.
#[derive(Clone)]
pub(super) struct Slot {
    pub(super) value: Held,
    /// Time of the value's last change, on the storage's logical clock.
    pub(super) version: u64,
    /// Time of the last change of any field, on the storage's logical clock.
    pub(super) touched: u64,
    pub(super) open: Option<Box<Open>>,
}

/// The changes since the first one of a running call.
#[derive(Clone)]
pub(super) struct Open {
    /// The value before these changes.
    base: Held,
    /// The committed value: without the changes of running calls.
    kept: Held,
    /// The changes in order; those of running calls with their writer.
    changes: Vec<(Option<Arc<Writer>>, Change)>,
}

impl Slot {
    pub(super) fn empty() -> Self {
        Self { value: None, version: 0, touched: 0, open: None }
    }

    /// Returns the value and its version, if there is one.
    pub(super) fn get(&self) -> Option<(&Arc<Value>, u64)> {
        Some((self.value.as_ref()?, self.version))
    }

    pub(super) fn value(&self) -> Option<&Arc<Value>> {
        self.value.as_ref()
    }

    /// Returns the committed value.
    pub(super) fn kept(&self) -> Option<&Arc<Value>> {
        self.open.as_ref().map_or(&self.value, |open| &open.kept).as_ref()
    }

    /// Returns the value, the committed value if it differs, and the time of the last change of any
    /// field.
    pub(super) fn now(&self) -> (Held, Option<Held>, u64) {
        (self.value.clone(), self.open.as_ref().map(|open| open.kept.clone()), self.touched)
    }

    /// True if the slot is empty and has no uncommitted changes.
    pub(super) fn is_gone(&self) -> bool {
        self.value.is_none() && self.open.is_none()
    }

    pub(super) fn is_of(&self, writer: &Arc<Writer>) -> bool {
        self.open.iter().flat_map(|open| &open.changes).any(|(by, _)| is(by, writer))
    }

    /// Returns the slot with the changes of `writer` committed.
    pub(super) fn keeping(mut self, writer: &Arc<Writer>) -> Self {
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
        // A change that cannot be applied without the changes of a running call is committed with
        // them.
        let ended = open.changes.iter().filter(|(by, _)| by.is_none());
        open.kept = replay(&open.base, ended).unwrap_or_else(|| self.value.clone());
        self
    }

    /// Returns the slot without the changes of `writer`.
    pub(super) fn without(mut self, writer: &Arc<Writer>) -> Self {
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

    /// Sets the value by a change of `writer`, or by a committed change if there is no writer;
    /// `kept` is the new committed value then.
    pub(super) fn put(&mut self, now: u64, writer: Option<Arc<Writer>>, change: Change, value: Held, kept: Held) {
        let before = mem::replace(&mut self.value, value);
        (self.version, self.touched) = (now, now);
        if writer.is_some() && self.open.is_none() {
            self.open = Some(Box::new(Open { base: before.clone(), kept: before, changes: Vec::new() }));
        }
        let Some(open) = &mut self.open else { return };
        if writer.is_none() {
            open.kept = kept;
        }
        if let Change::Set(_) = change {
            // Earlier changes by the same writer have no effect any more.
            open.changes.retain(|(by, _)| by.as_ref().map(Arc::as_ptr) != writer.as_ref().map(Arc::as_ptr));
        }
        open.changes.push((writer, change));
    }
}

fn is(by: &Option<Arc<Writer>>, writer: &Arc<Writer>) -> bool {
    by.as_ref().is_some_and(|by| Arc::ptr_eq(by, writer))
}

fn replay<'a>(base: &Held, changes: impl IntoIterator<Item = &'a (Option<Arc<Writer>>, Change)>) -> Option<Held> {
    changes.into_iter().try_fold(base.clone(), |value, (_, change)| change.apply_again(&value))
}
