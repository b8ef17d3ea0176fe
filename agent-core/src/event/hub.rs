//! The ordered event stream of a run tree, whose readers can fall behind and catch up.
// Over 500 lines: the hub and its readers share one ring.

use std::{
    collections::VecDeque,
    fmt,
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, Waker, ready},
    time::Duration,
};

use futures::{FutureExt, Stream, future::BoxFuture};

use super::{Event, EventKind, Position, cut::ChunkFilter, held::DeferredEvent, kind::Projector};
use crate::{
    error::{Error, Result},
    journal::{Entry, EntryBody, Journal},
    llm::Chunk,
    state::RunIds,
};

/// Capacity of the ring: a reader that is further behind catches up from the journal.
const RING: usize = 1024;
/// Number of entries per read from the journal.
const PAGE: usize = 256;
/// Number of retries of a failed read.
const RETRIES: u32 = 5;
/// Pause before the first retry; doubled for each further one.
const PAUSE: Duration = Duration::from_millis(100);

/// Event stream of one run tree. Cheap to clone.
///
/// A slow reader neither slows the run nor increases memory use: it reads the events that it missed
/// from the journal, which contains every durable event, and then continues with the ring.
#[derive(Clone)]
pub struct EventHub(Arc<Inner>);

struct Inner {
    /// The journal from which readers catch up.
    journal: Arc<dyn Journal>,
    session: Mutex<Arc<str>>,
    /// The root run of the tree.
    root: OnceLock<Arc<RunIds>>,
    readers: AtomicUsize,
    held: DeferredEvent,
    ring: Mutex<Ring>,
}

struct Ring {
    items: VecDeque<Item>,
    /// Current capacity: increased after many deferred events arrived at once.
    room: usize,
    /// Number of the first item in the ring, counted from the tree's start.
    first: u64,
    /// Sequence number before the tree's first entry; readers begin after it.
    start: Option<u64>,
    position: Position,
    closed: bool,
    /// Readers that wait for any item.
    wakers: Vec<Waker>,
    /// Readers that receive no chunk before the next message begins.
    patient: Vec<Waker>,
}

#[derive(Clone)]
enum Item {
    Entry(Arc<Entry>),
    Passing(Event),
}

impl EventHub {
    /// Creates the hub of a run tree that writes to `session`; readers that fall behind catch up
    /// from `journal`.
    pub fn new(journal: Arc<dyn Journal>, session: Arc<str>) -> Self {
        let ring = Ring {
            items: VecDeque::new(),
            room: RING,
            first: 0,
            start: None,
            position: Position::default(),
            closed: false,
            wakers: Vec::new(),
            patient: Vec::new(),
        };
        let (session, ring) = (Mutex::new(session), Mutex::new(ring));
        let (root, readers, held) = (OnceLock::new(), AtomicUsize::new(0), DeferredEvent::default());
        Self(Arc::new(Inner { journal, session, root, readers, held, ring }))
    }

    /// Name of the session.
    pub fn session(&self) -> Arc<str> {
        self.0.session.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Changes the session that the tree writes to. Must be called before anything is written.
    pub fn move_to(&self, session: Arc<str>) {
        *self.0.session.lock().unwrap_or_else(PoisonError::into_inner) = session;
    }

    /// Sets the root run of the tree, if it is not known yet.
    pub(super) fn set_root(&self, ids: &Arc<RunIds>) {
        self.0.root.get_or_init(|| ids.clone());
    }

    /// Returns a reader of all events of the tree, from its start. Past events are read from the
    /// journal, without chunks.
    pub fn subscribe(&self) -> EventStream {
        self.0.readers.fetch_add(1, Ordering::AcqRel);
        let ring = self.ring();
        EventStream {
            cursor: ring.first + ring.items.len() as u64,
            seen: Position { seq: ring.start.unwrap_or(0), after: 0 },
            after: Position::default(),
            hub: self.clone(),
            projector: Projector::default(),
            ready: VecDeque::new(),
            reading: None,
            until: ring.position.seq + 1,
            cut: if ring.start.is_some() { ChunkFilter::everybody() } else { ChunkFilter::default() },
            given_up: false,
        }
    }

    /// Creates the hub of a suspended or ended tree, for readers of its journal entries: its root
    /// run `ids` began with the entry `began`, and entries after `last` are not read.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use agent_core::{engine::EventHub, event::Position, journal::{Journal, MemoryJournal}, run::RunIds};
    /// use futures::StreamExt;
    ///
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let journal: Arc<dyn Journal> = Arc::new(MemoryJournal::default());
    /// let hub = EventHub::at_rest(journal, &Arc::new(RunIds::root("assistant", "garden")), 1, 0);
    /// assert_eq!(hub.subscribe_after(1, Position::default()).count().await, 0, "nothing was written");
    /// # });
    /// ```
    pub fn at_rest(journal: Arc<dyn Journal>, ids: &Arc<RunIds>, began: u64, last: u64) -> Self {
        let hub = Self::elsewhere(journal, ids, began);
        hub.grew(last);
        hub.close();
        hub
    }

    /// Creates the hub of a tree that another process drives: its root run `ids` began with the
    /// entry `began`. Readers receive journal entries as far as [`grew`](Self::grew) has announced
    /// them, and end when the hub is [closed](Self::close).
    pub fn elsewhere(journal: Arc<dyn Journal>, ids: &Arc<RunIds>, began: u64) -> Self {
        let hub = Self::new(journal, ids.session.clone());
        hub.set_root(ids);
        hub.ring().reached(began, began.saturating_sub(1));
        hub
    }

    /// Announces that the journal contains the session's entries up to `last`.
    pub fn grew(&self, last: u64) {
        let first = self.ring().position.seq + 1;
        if first <= last {
            self.skip(first, usize::try_from(last + 1 - first).unwrap_or(usize::MAX));
        }
    }

    /// Returns a reader of the tree's events after the position `after`. The tree began with the
    /// entry `began`, possibly in an earlier attempt, whose events are included. Transient events
    /// since `after` are included as far as the hub still has them: the newest 1,024 items, if the
    /// hub was observed when they arrived.
    pub fn subscribe_after(&self, began: u64, after: Position) -> EventStream {
        let mut reader = self.subscribe();
        let ring = self.ring();
        reader.seen = Position { seq: began.saturating_sub(1), after: 0 };
        reader.after = after;
        if let Some((at, before)) = ring.place_after(after) {
            reader.cursor = ring.first + at as u64;
            reader.until = before + 1;
            reader.cut = ChunkFilter::default();
        } else {
            // The journal has no transient events: those since the newest entry are in the ring.
            reader.cursor = ring.first + ring.since_newest_entry() as u64;
            reader.until = ring.position.seq + 1;
        }
        drop(ring);
        reader
    }

    /// Publishes an entry of the journal in the hub of a tree that another process drives, instead
    /// of [announcing](Self::grew) it: readers that keep up do not read the journal. Its sequence
    /// number must follow that of the newest entry.
    pub fn relay_entry(&self, entry: Arc<Entry>) {
        self.push_entry(entry);
    }

    /// Publishes a transient event in the hub of a tree that another process drives. Its position
    /// must be after that of the newest event, and belong to the newest entry.
    pub fn relay(&self, event: Event) {
        let mut ring = self.ring();
        ring.position = event.position;
        if self.is_observed() {
            ring.push(Item::Passing(event), false);
        }
    }

    /// Records that transient events of a tree that another process drives were lost: readers
    /// receive no chunks of the messages that have begun.
    pub fn lose(&self) {
        self.ring().forget();
    }

    /// True if a reader is about to fall behind. A model with much to emit then yields to other
    /// tasks.
    pub fn is_crowded(&self) -> bool {
        self.is_observed() && self.ring().items.len() > RING / 2
    }

    /// Closes the hub: readers end once they have read all events.
    pub fn close(&self) {
        self.0.held.let_go();
        let mut ring = self.ring();
        ring.closed = true;
        ring.wake();
    }

    /// True if both are handles of one hub.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    pub(crate) fn is_observed(&self) -> bool {
        self.0.readers.load(Ordering::Acquire) > 0
    }

    /// The transient events deferred behind unacknowledged entries.
    pub(super) fn held(&self) -> &DeferredEvent {
        &self.0.held
    }

    /// Assigns a position to a transient event and publishes it atomically, so that delivery order
    /// matches position order. Deferred events displace no other items: they arrive at once, and no
    /// reader could have read those meanwhile.
    pub(super) fn pass(&self, ids: Arc<RunIds>, kind: EventKind, was_held: bool) -> Position {
        let mut ring = self.ring();
        ring.position.after += 1;
        let position = ring.position;
        if self.is_observed() {
            ring.push(Item::Passing(Event { position, ids, kind }), was_held);
        }
        position
    }

    pub(super) fn push_entry(&self, entry: Arc<Entry>) {
        let mut ring = self.ring();
        ring.reached(entry.seq, entry.seq);
        if self.is_observed() {
            ring.push(Item::Entry(entry), false);
        }
    }

    /// Skips entries that were not observed: later readers read them from the journal.
    pub(crate) fn skip(&self, first: u64, count: usize) {
        let mut ring = self.ring();
        ring.reached(first, first + (count as u64).saturating_sub(1));
        if self.is_observed() {
            // A reader subscribed between the append and its acknowledgement: it must notice the
            // gap in the ring.
            ring.forget();
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

    /// Sequence number of the first entry in the ring, or of the next one to come: all entries
    /// before it are in the journal.
    fn first_entry(&self) -> u64 {
        let seq = |item: &Item| match item {
            Item::Entry(entry) => Some(entry.seq),
            Item::Passing(_) => None,
        };
        self.items.iter().find_map(seq).unwrap_or(self.position.seq + 1)
    }

    /// Returns the index of the first item after a position, and the sequence number of the newest
    /// entry before it; `None` if some of these items have left the ring.
    fn place_after(&self, place: Position) -> Option<(usize, u64)> {
        let at = self.items.partition_point(|item| item.position() <= place);
        match at.checked_sub(1).map(|before| self.items[before].position().seq) {
            Some(before) => Some((at, before)),
            None => {
                let start = self.start?;
                // Transient events before the first entry precede it in the ring.
                let mut entries = self.items.iter().filter_map(|item| match item {
                    Item::Entry(entry) => Some(entry.seq),
                    Item::Passing(_) => None,
                });
                (entries.next() == Some(start + 1)).then_some((0, start))
            }
        }
    }

    /// Returns the index after the newest entry.
    fn since_newest_entry(&self) -> usize {
        self.items.iter().rposition(|item| matches!(item, Item::Entry(_))).map_or(0, |at| at + 1)
    }

    /// Drops all items in a way that all readers notice.
    fn forget(&mut self) {
        self.first += self.items.len() as u64 + 1;
        self.items.clear();
        self.wake();
    }

    /// Appends an item. Deferred events grow the ring by one; later events shrink it again.
    fn push(&mut self, item: Item, was_held: bool) {
        self.room = if was_held { self.room + 1 } else { RING.max(self.room - 1) };
        while self.items.len() >= self.room {
            self.items.pop_front();
            self.first += 1;
        }
        let is_in_message = item.is_in_message();
        self.items.push_back(item);
        match is_in_message {
            true => self.wakers.drain(..).for_each(Waker::wake),
            false => self.wake(),
        }
    }

    /// Returns the item at `at`. A sole reader removes the oldest item: later readers begin at the
    /// end, so no other reader needs it.
    fn item(&mut self, at: usize, is_alone: bool) -> Option<Item> {
        if at > 0 || !is_alone {
            return self.items.get(at).cloned();
        }
        let oldest = self.items.pop_front()?;
        self.first += 1;
        Some(oldest)
    }

    fn wake(&mut self) {
        self.wakers.drain(..).chain(self.patient.drain(..)).for_each(Waker::wake);
    }
}

impl Item {
    fn position(&self) -> Position {
        match self {
            Self::Entry(entry) => Position { seq: entry.seq, after: 0 },
            Self::Passing(event) => event.position,
        }
    }

    /// True for a chunk that does not begin a message.
    fn is_in_message(&self) -> bool {
        match self {
            Self::Passing(event) => {
                matches!(&event.kind, EventKind::Chunk(chunk) if !matches!(chunk, Chunk::Restart))
            }
            Self::Entry(_) => false,
        }
    }
}

/// Events of a run tree, in order. Ends when the tree's root run has ended and everything was read.
///
/// A reader that fell behind receives whole messages instead of the chunks it missed: it receives
/// every durable event exactly once. If a run without a store has dropped entries, a warning
/// reports them. If several attempts to read the journal fail, the last event is an
/// [`EventKind::Unreadable`], and the stream ends; the run continues.
pub struct EventStream {
    hub: EventHub,
    /// Number of the next item in the ring.
    cursor: u64,
    /// Position up to which events were returned.
    seen: Position,
    /// Position up to which events are skipped.
    after: Position,
    projector: Projector,
    ready: VecDeque<Event>,
    reading: Option<BoxFuture<'static, Result<Vec<Arc<Entry>>>>>,
    /// Entries before this one are read from the journal: the ring no longer has them.
    until: u64,
    cut: ChunkFilter,
    /// True if the journal could not be read.
    given_up: bool,
}

impl EventStream {
    /// Position of the reader: all events up to it were returned.
    pub fn position(&self) -> Position {
        self.seen
    }

    fn take(&mut self, item: Item) -> Option<Event> {
        match item {
            Item::Passing(event) => {
                // Transient events before the tree's first entry do not know their position in the
                // session.
                self.seen = self.seen.max(event.position);
                (self.cut.lets_through(&event) && event.position > self.after).then_some(event)
            }
            Item::Entry(entry) => {
                if let EntryBody::ModelAccepted { .. } = entry.body {
                    self.cut.begins(&entry.run);
                }
                self.take_entry(&entry)
            }
        }
    }

    fn take_entry(&mut self, entry: &Entry) -> Option<Event> {
        self.seen = Position { seq: entry.seq, after: 0 };
        self.projector.project(entry).filter(|event| event.position > self.after)
    }

    /// Reports, as the last event, that the journal cannot be read.
    fn give_up(&mut self, error: &Error) {
        self.given_up = true;
        let kind = EventKind::Unreadable { after: self.seen.seq, error: error.to_string() };
        let root = self.hub.0.root.get().cloned();
        self.ready.extend(root.map(|ids| Event { position: self.seen, ids, kind }));
    }

    /// Reads a page of missed entries.
    fn poll_journal(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let reading = self.reading.get_or_insert_with(|| {
            let (journal, session, after) = (self.hub.0.journal.clone(), self.hub.session(), self.seen.seq);
            let limit = usize::try_from(self.until - 1 - after).unwrap_or(PAGE).min(PAGE);
            async move { read_page(&*journal, &session, after, limit).await }.boxed()
        });
        let page = ready!(reading.poll_unpin(cx));
        self.reading = None;
        let page = match page {
            Ok(page) => page,
            Err(e) => {
                self.give_up(&e);
                return Poll::Ready(());
            }
        };
        // A bounded in-memory journal may begin after the requested entry.
        let page = page.iter().filter(|entry| entry.seq < self.until).collect::<Vec<_>>();
        let next = page.first().map_or(self.until, |entry| entry.seq);
        self.miss(next - self.seen.seq - 1);
        for entry in page {
            let event = self.take_entry(entry);
            self.ready.extend(event);
        }
        Poll::Ready(())
    }

    /// Reports that this number of entries has been dropped.
    fn miss(&mut self, entries: u64) {
        if entries == 0 {
            return;
        }
        self.seen = Position { seq: self.seen.seq + entries, after: 0 };
        let Some(ids) = self.hub.0.root.get() else { return };
        self.projector.expect(ids);
        let message = format!(
            "the events of {entries} entries are not kept any more: give the agent a store, or let it keep more (entries_kept)"
        );
        let kind = EventKind::Warning { message };
        self.ready.push_back(Event { position: self.seen, ids: ids.clone(), kind });
    }
}

/// Reads a page, with retries.
async fn read_page(journal: &dyn Journal, session: &str, after: u64, limit: usize) -> Result<Vec<Arc<Entry>>> {
    for retry in 0..RETRIES {
        if let Ok(page) = journal.read(session, after, limit).await {
            return Ok(page);
        }
        tokio::time::sleep(PAUSE * 2_u32.pow(retry)).await;
    }
    journal.read(session, after, limit).await
}

impl Stream for EventStream {
    type Item = Event;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        let this = &mut *self;
        loop {
            if let Some(event) = this.ready.pop_front() {
                return Poll::Ready(Some(event));
            }
            if this.given_up {
                return Poll::Ready(None);
            }
            if this.seen.seq + 1 < this.until {
                ready!(this.poll_journal(cx));
                continue;
            }
            let mut ring = this.hub.0.ring.lock().unwrap_or_else(PoisonError::into_inner);
            if this.cursor < ring.first {
                this.cursor = ring.first;
                // A reader that subscribed before the tree began has not missed the session's
                // earlier entries.
                this.seen = this.seen.max(Position { seq: ring.start.unwrap_or(0), after: 0 });
                this.until = ring.first_entry();
                this.cut = ChunkFilter::everybody();
                continue;
            }
            let at = usize::try_from(this.cursor - ring.first).unwrap_or(usize::MAX);
            let is_alone = this.hub.0.readers.load(Ordering::Acquire) == 1;
            match ring.item(at, is_alone) {
                Some(item) => {
                    drop(ring);
                    this.cursor += 1;
                    if let Some(event) = this.take(item) {
                        return Poll::Ready(Some(event));
                    }
                }
                None if ring.closed => return Poll::Ready(None),
                None => {
                    // A reader that waits for the next message is not woken for chunks, and costs
                    // the run nothing.
                    let waiting = if this.cut.is_everybody() { &mut ring.patient } else { &mut ring.wakers };
                    if !waiting.iter().any(|w| w.will_wake(cx.waker())) {
                        waiting.push(cx.waker().clone());
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
        f.debug_struct("EventHub").field("session", &self.session()).finish_non_exhaustive()
    }
}

impl fmt::Debug for EventStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventStream").field("seen", &self.seen).finish_non_exhaustive()
    }
}
