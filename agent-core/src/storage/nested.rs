//! Detection of closures that change the value that they are to compute.

use std::{cell::RefCell, collections::BTreeSet};

use super::slots::Slots;

thread_local! {
    /// The closures that run on this thread, the innermost last.
    static RUNNING: RefCell<Vec<Running>> = const { RefCell::new(Vec::new()) };
}

/// A closure that computes values of a storage.
struct Running {
    /// Address of the storage, which lives at least as long as the closure runs.
    slots: usize,
    /// Names of the values that this thread changed meanwhile.
    changed: BTreeSet<String>,
}

/// Marks that a closure runs on this thread, until it is dropped.
pub(super) struct Nested {
    depth: usize,
}

impl Nested {
    pub(super) fn enter(slots: &Slots) -> Self {
        RUNNING.with_borrow_mut(|running| {
            running.push(Running { slots: address(slots), changed: BTreeSet::new() });
            Self { depth: running.len() }
        })
    }

    /// True if this thread changed the value since the closure began.
    pub(super) fn has_changed(&self, name: &str) -> bool {
        RUNNING.with_borrow(|running| running.get(self.depth - 1).is_some_and(|own| own.changed.contains(name)))
    }
}

impl Drop for Nested {
    fn drop(&mut self) {
        RUNNING.with_borrow_mut(|running| running.truncate(self.depth - 1));
    }
}

/// Records that this thread changed a value.
pub(super) fn changed(slots: &Slots, name: &str) {
    RUNNING.with_borrow_mut(|running| {
        for closure in running.iter_mut().filter(|closure| closure.slots == address(slots)) {
            closure.changed.insert(name.to_owned());
        }
    });
}

fn address(slots: &Slots) -> usize {
    std::ptr::from_ref(slots).addr()
}
