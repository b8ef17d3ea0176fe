//! The ordered stream of a run tree's events, with readers that can fall behind and catch up.

use std::{
    collections::VecDeque,
    fmt,
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, Waker},
};

use futures::{FutureExt, Stream, future::BoxFuture};

use super::{Event, Position, kind::Projector};
use crate::{Entry, Journal, Result};

/// Items that a reader may be behind before it has to catch up from the journal.
const RING: usize = 1024;
/// Entries that are read from the journal at once.
const PAGE: usize = 256;

/// The stream of one run tree's events. Cheap to clone.
///
/// A slow reader never slows the run and never grows memory: what it missed in the ring it reads from the journal, where
/// every durable event is, and goes on from there.
#[derive(Clone)]
pub struct EventHub(Arc<Inner>);

struct Inner {
    journal: Arc<dyn Journal>,
    session: Arc<str>,
    readers: AtomicUsize,
    ring: Mutex<Ring>,
}

struct Ring {
    items: VecDeque<Item>,
    /// The number of the first item in the ring, counted from the tree's start.
    first: u64,
    /// The sequence number before the tree's first entry; readers begin after it.
    start: Option<u64>,
    position: Position,
    closed: bool,
    wakers: Vec<Waker>,
}

#[derive(Clone)]
enum Item {
    Entry(Arc<Entry>),
    Passing(Event),
}

impl EventHub {
    /// The hub of a run tree that writes to `session` of `journal`.
    pub fn new(journal: Arc<dyn Journal>, session: Arc<str>) -> Self {
        let ring = Ring {
            items: VecDeque::new(),
            first: 0,
            start: None,
            position: Position::default(),
            closed: false,
            wakers: Vec::new(),
        };
        Self(Arc::new(Inner { journal, session, readers: AtomicUsize::new(0), ring: Mutex::new(ring) }))
    }

    /// The session's journal.
    pub fn journal(&self) -> &Arc<dyn Journal> {
        &self.0.journal
    }

    /// The session.
    pub fn session(&self) -> &str {
        &self.0.session
    }

    /// A reader of all events of the tree, from its start. What is over already is read from the journal, without chunks.
    pub fn subscribe(&self) -> EventStream {
        self.0.readers.fetch_add(1, Ordering::AcqRel);
        let ring = self.ring();
        let behind = ring.start.is_some();
        EventStream {
            cursor: ring.first + ring.items.len() as u64,
            seen: Position { seq: ring.start.unwrap_or(0), after: 0 },
            hub: self.clone(),
            projector: Projector::default(),
            ready: VecDeque::new(),
            reading: None,
            behind,
            mid_message: behind,
        }
    }

    /// No more events will come: readers end when they have read all.
    pub fn close(&self) {
        let mut ring = self.ring();
        ring.closed = true;
        ring.wake();
    }

    pub(super) fn is_observed(&self) -> bool {
        self.0.readers.load(Ordering::Acquire) > 0
    }

    /// The place of the next passing event.
    pub(super) fn next_passing(&self) -> Position {
        let mut ring = self.ring();
        ring.position.after += 1;
        ring.position
    }

    pub(super) fn push_passing(&self, event: Event) {
        if self.is_observed() {
            self.ring().push(Item::Passing(event));
        }
    }

    pub(super) fn push_entry(&self, entry: Arc<Entry>) {
        let mut ring = self.ring();
        ring.reached(entry.seq, entry.seq);
        if self.is_observed() {
            ring.push(Item::Entry(entry));
        }
    }

    /// Entries that nobody watched: whoever comes later reads them from the journal.
    pub(super) fn skip(&self, first: u64, count: usize) {
        let mut ring = self.ring();
        ring.reached(first, first + (count as u64).saturating_sub(1));
        if self.is_observed() {
            // A reader came between the append and its acknowledgement: it must notice that the ring has a hole.
            ring.first += ring.items.len() as u64 + 1;
            ring.items.clear();
            ring.wake();
        }
    }

    fn ring(&self) -> MutexGuard<'_, Ring> {
        self.0.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ring {
    fn reached(&mut self, first: u64, last: u64) {
        self.start.get_or_insert(first - 1);
        self.position = Position { seq: last, after: 0 };
    }

    fn push(&mut self, item: Item) {
        if self.items.len() == RING {
            self.items.pop_front();
            self.first += 1;
        }
        self.items.push_back(item);
        self.wake();
    }

    fn wake(&mut self) {
        self.wakers.drain(..).for_each(Waker::wake);
    }
}

/// The events of a run tree, in order. Ends when the tree's root run has ended and everything was read.
///
/// A reader that fell behind gets whole messages instead of the chunks it missed: every durable event is there, exactly
/// once.
pub struct EventStream {
    hub: EventHub,
    /// The number of the next item in the ring.
    cursor: u64,
    /// Everything up to here was given out.
    seen: Position,
    projector: Projector,
    ready: VecDeque<Event>,
    reading: Option<BoxFuture<'static, Result<Vec<Arc<Entry>>>>>,
    /// True while the journal has to be read.
    behind: bool,
    /// True if the chunks that come next belong to a message whose beginning was missed.
    mid_message: bool,
}

impl EventStream {
    /// Where the reader is: everything up to here was given out.
    pub fn position(&self) -> Position {
        self.seen
    }

    fn take(&mut self, item: Item) -> Option<Event> {
        match item {
            Item::Passing(_) if self.mid_message => None,
            Item::Passing(event) => {
                self.seen = event.position;
                Some(event)
            }
            Item::Entry(entry) => self.take_entry(&entry),
        }
    }

    fn take_entry(&mut self, entry: &Entry) -> Option<Event> {
        if entry.seq <= self.seen.seq {
            return None; // read from the journal before
        }
        self.seen = Position { seq: entry.seq, after: 0 };
        self.mid_message = false;
        self.projector.project(entry)
    }

    /// One page from the journal; ready when there is nothing more to read there.
    fn poll_journal(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while self.behind {
            let reading = self.reading.get_or_insert_with(|| {
                let (journal, session) = (self.hub.0.journal.clone(), self.hub.0.session.clone());
                let after = self.seen.seq;
                async move { journal.read(&session, after, PAGE).await }.boxed()
            });
            let Poll::Ready(page) = reading.poll_unpin(cx) else { return Poll::Pending };
            self.reading = None;
            // A journal that fails here fails the run's own appends too, and the run reports it.
            let page = page.unwrap_or_default();
            self.behind = page.len() == PAGE;
            for entry in &page {
                let event = self.take_entry(entry);
                self.ready.extend(event);
            }
            self.mid_message = true;
            if !self.ready.is_empty() {
                return Poll::Ready(());
            }
        }
        Poll::Ready(())
    }
}

impl Stream for EventStream {
    type Item = Event;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        let this = &mut *self;
        loop {
            if let Some(event) = this.ready.pop_front() {
                return Poll::Ready(Some(event));
            }
            if this.behind {
                let Poll::Ready(()) = this.poll_journal(cx) else { return Poll::Pending };
                continue;
            }
            let mut ring = this.hub.0.ring.lock().unwrap_or_else(PoisonError::into_inner);
            if this.cursor < ring.first {
                this.cursor = ring.first;
                this.behind = true;
                continue;
            }
            let at = usize::try_from(this.cursor - ring.first).unwrap_or(usize::MAX);
            match ring.items.get(at).cloned() {
                Some(item) => {
                    drop(ring);
                    this.cursor += 1;
                    if let Some(event) = this.take(item) {
                        return Poll::Ready(Some(event));
                    }
                }
                None if ring.closed => return Poll::Ready(None),
                None => {
                    if !ring.wakers.iter().any(|w| w.will_wake(cx.waker())) {
                        ring.wakers.push(cx.waker().clone());
                    }
                    return Poll::Pending;
                }
            }
        }
    }
}

impl Drop for EventStream {
    fn drop(&mut self) {
        self.hub.0.readers.fetch_sub(1, Ordering::AcqRel);
    }
}

impl fmt::Debug for EventHub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventHub").field("session", &self.0.session).finish_non_exhaustive()
    }
}

impl fmt::Debug for EventStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventStream").field("seen", &self.seen).finish_non_exhaustive()
    }
}
