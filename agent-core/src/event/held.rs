//! Passing events behind entries that are on their way to the journal.

use std::{
    collections::VecDeque,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use super::{Emitter, EventKind};

/// Keeps a tree's passing events back until readers were told of the entries before them: they get what a run did in the order in
/// which it was done, and a run need not wait for its journal to say something.
#[derive(Default)]
pub(super) struct Held {
    /// True while batches are on their way. Looked at without the lock: chunks come in millions, and batches seldom.
    is_open: AtomicBool,
    queue: Mutex<Queue>,
}

/// Batches are counted in the order in which the journal got them.
#[derive(Default)]
struct Queue {
    sent: u64,
    told: u64,
    /// Each with how many batches come before it.
    events: VecDeque<(u64, Emitter, EventKind)>,
}

impl Held {
    /// A batch is on its way.
    pub(super) fn sent(&self) {
        self.lock().sent += 1;
        self.is_open.store(true, Ordering::Release);
    }

    /// Readers were told of the oldest batch that is on its way: the events behind it leave.
    pub(super) fn told(&self) {
        let until = self.lock().told + 1;
        self.release(until);
    }

    /// No batch that is on its way will be told of: all events leave.
    pub(super) fn let_go(&self) {
        let until = self.lock().sent;
        self.release(until);
    }

    /// Keeps an event back if batches are on their way, and otherwise gives it back.
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

    /// Lets the events up to a batch leave. Those that come meanwhile are held, so that they leave behind them.
    fn release(&self, until: u64) {
        loop {
            let mut queue = self.lock();
            if queue.events.front().is_none_or(|(before, ..)| *before > until) {
                queue.told = until.max(queue.told);
                self.is_open.store(queue.sent > queue.told, Ordering::Release);
                return;
            }
            let event = queue.events.pop_front();
            drop(queue); // whoever is told may have something to say
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
