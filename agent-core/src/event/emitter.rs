//! Emission of a run's events.

use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Mutex, PoisonError, RwLock,
        atomic::{AtomicBool, Ordering},
    },
};

use super::{Event, EventHub, EventKind, kind::Projector};
use crate::{journal::Entry, state::RunIds};

/// Receiver of events, called in order on the run's task. It must not block: it should send the
/// event to a channel. A sink that panics is detached, and the run's other readers receive a
/// warning.
pub trait EventSink: Send + Sync + 'static {
    /// Receives an event.
    fn emit(&self, event: &Event);
}

impl<F: Fn(&Event) + Send + Sync + 'static> EventSink for F {
    fn emit(&self, event: &Event) {
        self(event);
    }
}

/// Publishes one run's events: to its own sinks, then to those of its ancestors, then to the tree's
/// [`EventHub`].
#[derive(Clone)]
pub struct Emitter {
    /// Stored here instead of in the shared part: most calls only check whether the hub is
    /// observed.
    hub: EventHub,
    run: Arc<Inner>,
}

struct Inner {
    ids: Arc<RunIds>,
    above: Option<Emitter>,
    sinks: RwLock<Arc<[Arc<Attached>]>>,
    has_sinks: AtomicBool,
}

struct Attached {
    projector: Mutex<Projector>,
    sink: Arc<dyn EventSink>,
    /// True once the sink has panicked.
    detached: AtomicBool,
}

impl Attached {
    /// Sends an event to the sink. Returns `false` if the sink panics.
    fn send(&self, event: &Event) -> bool {
        let sent = catch_unwind(AssertUnwindSafe(|| self.sink.emit(event))).is_ok();
        self.detached.fetch_or(!sent, Ordering::AcqRel);
        sent
    }
}

impl Emitter {
    /// Creates the emitter of the run `ids`, which also publishes through `above`, the emitter of
    /// the parent run.
    pub fn new(ids: Arc<RunIds>, hub: EventHub, above: Option<Self>) -> Self {
        let sinks = RwLock::new(Arc::default());
        hub.set_root(&ids);
        Self { hub, run: Arc::new(Inner { ids, above, sinks, has_sinks: AtomicBool::new(false) }) }
    }

    /// The tree's hub.
    pub fn hub(&self) -> &EventHub {
        &self.hub
    }

    /// Also sends the events of this run and its descendants to `sink`, beginning with those of
    /// entries that are not durable yet.
    pub fn attach(&self, sink: Arc<dyn EventSink>) {
        let projector = Mutex::new(Projector::for_run(&self.run.ids));
        let attached = Arc::new(Attached { projector, sink, detached: AtomicBool::new(false) });
        let mut sinks = self.run.sinks.write().unwrap_or_else(PoisonError::into_inner);
        *sinks = sinks.iter().cloned().chain([attached]).collect();
        drop(sinks);
        self.run.has_sinks.store(true, Ordering::Release);
    }

    /// True if there is a reader or a sink.
    pub fn is_observed(&self) -> bool {
        self.hub.is_observed() || self.has_sinks()
    }

    fn has_sinks(&self) -> bool {
        self.chain().any(|e| e.run.has_sinks.load(Ordering::Acquire))
    }

    /// Emits a transient event, after the events of all unacknowledged entries.
    pub fn emit(&self, kind: EventKind) {
        if self.is_observed()
            && let Some(kind) = self.hub.held().hold(self, kind)
        {
            self.pass(kind, false);
        }
    }

    /// Emits a transient event immediately.
    pub(super) fn pass(&self, kind: EventKind, was_held: bool) {
        if self.has_sinks() {
            let position = self.hub.pass(self.run.ids.clone(), kind.clone(), was_held);
            let event = Event { position, ids: self.run.ids.clone(), kind };
            self.each_sink(|attached| attached.send(&event));
        } else {
            self.hub.pass(self.run.ids.clone(), kind, was_held);
        }
    }

    /// Records that entries were appended to the journal and are not durable yet.
    pub(crate) fn sent(&self) {
        self.hub.held().sent();
    }

    /// Like [`committed`](Self::committed), for the oldest [sent](Self::sent) entries.
    pub(crate) fn acknowledged(&self, first: u64, entries: Option<Vec<Entry>>, count: usize) {
        self.committed(first, entries, count);
        self.hub.held().told();
    }

    /// Records that no further batch will be acknowledged.
    pub(crate) fn let_go(&self) {
        self.hub.held().let_go();
    }

    /// Publishes entries that are now durable; the first has the sequence number `first`.
    pub(crate) fn committed(&self, first: u64, entries: Option<Vec<Entry>>, count: usize) {
        let Some(entries) = entries else {
            self.hub.skip(first, count);
            return;
        };
        for (seq, entry) in (first..).zip(entries) {
            let entry = Arc::new(Entry { seq, ..entry });
            self.each_sink(|attached| {
                let event = attached.projector.lock().unwrap_or_else(PoisonError::into_inner).project(&entry);
                event.is_none_or(|event| attached.send(&event))
            });
            self.hub.push_entry(entry);
        }
    }

    fn chain(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |e| e.run.above.as_ref())
    }

    /// Calls `send` with every sink, and warns of each that failed.
    fn each_sink(&self, send: impl Fn(&Attached) -> bool) {
        let mut failed = 0;
        for emitter in self.chain().filter(|e| e.run.has_sinks.load(Ordering::Acquire)) {
            // No lock is held while they run: a sink may attach another one.
            let sinks = emitter.run.sinks.read().unwrap_or_else(PoisonError::into_inner).clone();
            let live = sinks.iter().filter(|attached| !attached.detached.load(Ordering::Acquire));
            failed += live.filter(|attached| !send(attached)).count();
        }
        for _ in 0..failed {
            self.emit(EventKind::Warning { message: "an event sink panicked: it gets no more events".into() });
        }
    }
}

impl fmt::Debug for Emitter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Emitter").field("run", &self.run.ids.run_id).finish_non_exhaustive()
    }
}
