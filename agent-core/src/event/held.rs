//! Deferral of transient events behind unacknowledged entries.

use std::{
    collections::VecDeque,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use super::{Emitter, EventKind};

/// Delays transient events until earlier journal entries are acknowledged, so that readers see them
/// in order, and a run need not wait for its journal to emit an event.
#[derive(Default)]
pub(super) struct DeferredEvent {
    /// True while batches are unacknowledged. Read without the lock: chunks are frequent, batches
    /// are not.
    is_open: AtomicBool,
    queue: Mutex<Queue>,
}

/// Batches are numbered in the order in which the journal received them.
#[derive(Default)]
struct Queue {
    sent: u64,
    told: u64,
    /// Each event with the number of batches before it.
    events: VecDeque<(u64, Emitter, EventKind)>,
}

impl DeferredEvent {
    /// Records that a batch was appended.
    pub(super) fn sent(&self) {
        self.lock().sent += 1;
        self.is_open.store(true, Ordering::Release);
    }

    /// Records that the oldest unacknowledged batch was published: the events deferred behind it
    /// leave.
    pub(super) fn told(&self) {
        let until = self.lock().told + 1;
        self.release(until);
    }

    /// Releases all events: no further batch will be acknowledged.
    pub(super) fn let_go(&self) {
        let until = self.lock().sent;
        self.release(until);
    }

    /// Defers an event if batches are unacknowledged, and otherwise returns it.
    pub(super) fn hold(&self, emitter: &Emitter, kind: EventKind) -> Option<EventKind> {
        if !self.is_open.load(Ordering::Acquire) {
            return Some(kind);
        }
        let mut queue = self.lock();
        if queue.sent == queue.told {
            return Some(kind);
        }
        let before = queue.sent;
        queue.events.push_back((before, emitter.clone(), kind));
        None
    }

    /// Releases the events up to a batch. Events that arrive meanwhile are deferred, so that they
    /// leave afterwards.
    fn release(&self, until: u64) {
        loop {
            let mut queue = self.lock();
            if queue.events.front().is_none_or(|(before, ..)| *before > until) {
                queue.told = until.max(queue.told);
                self.is_open.store(queue.sent > queue.told, Ordering::Release);
                return;
            }
            let event = queue.events.pop_front();
            drop(queue); // sinks may emit events
            if let Some((_, emitter, kind)) = event {
                emitter.pass(kind, true);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use futures::StreamExt;

    use super::*;
    use crate::{
        history::History,
        journal::{Entry, EntryBody},
        testing::detached_run,
    };

    #[tokio::test]
    async fn a_reader_that_keeps_up_gets_all_that_was_held_back_at_once() {
        let run = detached_run(History::default());
        let emitter = run.engine().emitter();
        let reader = emitter.hub().subscribe();
        emitter.sent();
        (0..3_000).for_each(|n| emitter.emit(EventKind::Warning { message: n.to_string() }));
        let body = EntryBody::Decided { name: "n".into(), value: 1.into(), beginning: false };
        emitter.acknowledged(1, Some(vec![Entry::new("r".into(), 0, body)]), 1);
        emitter.emit(EventKind::Warning { message: "behind all".into() });
        emitter.hub().close();
        let told = reader.filter(|event| std::future::ready(matches!(event.kind, EventKind::Warning { .. })));
        assert_eq!(told.count().await, 3_001);
    }
}
