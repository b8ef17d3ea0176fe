//! Events of runs that other processes execute: journal entries, merged with relayed transient
//! events. All viewers of a run in this process share one feed.

use std::{
    collections::HashMap,
    fmt,
    pin::pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use agent::{
    Event,
    dispatch::{ChunkRelay, RelayBatch, RelayItem, RunAddress},
    engine::EventHub,
    event::{EventStream, Position},
    journal::Journal,
};
use futures::{
    FutureExt, StreamExt,
    stream::{self, BoxStream},
};
use tokio::{runtime::Handle, task::JoinSet, time::sleep};

use crate::error::ApiError;

/// Time that a feed waits for relayed events that belong before a new journal entry, while the run
/// continues, and at its end.
const GRACE: (Duration, Duration) = (Duration::from_millis(250), Duration::from_millis(60));
/// Time for which a feed without viewers continues: a page that reloads reconnects soon.
const LINGER: Duration = Duration::from_secs(10);
/// Number of entries per read from the journal.
const PAGE: usize = 256;

/// Active feeds by run.
#[derive(Default)]
pub(super) struct Feeds(Mutex<HashMap<RunAddress, Weak<Feed>>>);

impl Feeds {
    /// Returns the active feed of a run.
    pub(super) fn find(&self, run: &RunAddress) -> Option<Arc<Feed>> {
        self.lock().get(run)?.upgrade()
    }

    /// Returns the active feed of a run, or the one that `start` creates.
    pub(super) fn enter(&self, run: RunAddress, start: impl FnOnce() -> Feed) -> Arc<Feed> {
        let mut feeds = self.lock();
        if let Some(feed) = feeds.get(&run).and_then(Weak::upgrade) {
            return feed;
        }
        feeds.retain(|_, feed| feed.strong_count() > 0);
        let feed = Arc::new(start());
        feeds.insert(run, Arc::downgrade(&feed));
        feed
    }

    /// Removes a feed that is about to end: later viewers start another one.
    pub(super) fn leave(&self, run: &RunAddress, hub: &EventHub) {
        let mut feeds = self.lock();
        // The feed that holds the last reference must not be dropped under the lock.
        let feed = feeds.get(run).and_then(Weak::upgrade);
        if feed.as_ref().is_none_or(|feed| feed.hub.is_same(hub)) {
            feeds.remove(run);
        }
        drop(feeds);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<RunAddress, Weak<Feed>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Feed of one run. Its task is aborted when the feed is dropped.
pub(super) struct Feed {
    hub: EventHub,
    /// Sequence number of the run's first entry.
    began: u64,
    is_over: Arc<AtomicBool>,
    /// A reader that consumes nothing: it keeps transient events for reconnecting viewers.
    _kept: Mutex<EventStream>,
    _task: JoinSet<()>,
}

impl Feed {
    /// Starts the feed of a run that began with this entry. `work` feeds the merge to the run's end.
    pub(super) fn start<F: Future<Output = ()> + Send + 'static>(
        hub: EventHub,
        began: u64,
        work: impl FnOnce(EventHub) -> F,
    ) -> Self {
        let (kept, is_over, mut task) = (Mutex::new(hub.subscribe()), Arc::new(AtomicBool::new(false)), JoinSet::new());
        let (work, over, closing) = (work(hub.clone()), is_over.clone(), hub.clone());
        drop(task.spawn(async move {
            work.await;
            over.store(true, Ordering::Release);
            closing.close();
        }));
        Self { hub, began, is_over, _kept: kept, _task: task }
    }

    /// Streams the run's events after a position, until the feed ends.
    pub(super) fn events(self: Arc<Self>, after: Position) -> BoxStream<'static, Event> {
        let events = self.hub.subscribe_after(self.began, after);
        let viewer = Viewing(self);
        events
            .map(move |event| {
                let _ = &viewer; // the feed lives as long as its viewers
                event
            })
            .boxed()
    }
}

/// Viewer of a feed.
struct Viewing(Arc<Feed>);

impl Drop for Viewing {
    fn drop(&mut self) {
        if let (Ok(runtime), false) = (Handle::try_current(), self.0.is_over.load(Ordering::Acquire)) {
            let feed = self.0.clone();
            drop(runtime.spawn(async move {
                sleep(LINGER).await;
                drop(feed);
            }));
        }
    }
}

/// Merges the entries of a run's session and relayed transient events into a hub, in the order of
/// their positions.
pub(super) struct Merge {
    hub: EventHub,
    journal: Arc<dyn Journal>,
    relayed: BoxStream<'static, RelayBatch>,
    /// Position of the newest event in the hub.
    position: Position,
    /// Position of the newest relayed event.
    seen: Position,
    /// Publisher and number of the last batch.
    last: Option<(u64, u64)>,
    /// True if the relay is expected to announce the next entry.
    is_heard: bool,
}

impl Merge {
    /// Merges into a hub [of another process](EventHub::elsewhere) whose run began with this entry.
    pub(super) fn new(
        hub: EventHub,
        began: u64,
        journal: Arc<dyn Journal>,
        relayed: BoxStream<'static, RelayBatch>,
    ) -> Self {
        let position = Position { seq: began.saturating_sub(1), after: 0 };
        let relayed = relayed.chain(stream::pending()).boxed();
        Self { hub, journal, relayed, position, seen: Position::default(), last: None, is_heard: false }
    }

    /// Publishes the entries up to `newest`. Waits shortly for relayed events that belong before
    /// them, unless the relay is silent.
    ///
    /// # Errors
    /// The errors of the store.
    pub(super) async fn catch_up(&mut self, newest: u64, is_over: bool) -> Result<(), ApiError> {
        while let Some(batch) = self.relayed.next().now_or_never() {
            self.apply(batch).await?;
        }
        let mut grace = pin!(sleep(if is_over { GRACE.1 } else { GRACE.0 }));
        while self.is_heard && self.position.seq < newest {
            tokio::select! {
                biased;
                batch = self.relayed.next() => self.apply(batch).await?,
                () = &mut grace => self.is_heard = false,
            }
        }
        self.read_to(newest).await
    }

    /// Publishes relayed events until `until` completes.
    ///
    /// # Errors
    /// The errors of the store, and those of `until`.
    pub(super) async fn relay_until(
        &mut self,
        until: impl Future<Output = Result<(), ApiError>>,
    ) -> Result<(), ApiError> {
        let mut until = pin!(until);
        loop {
            tokio::select! {
                biased;
                batch = self.relayed.next() => self.apply(batch).await?,
                done = &mut until => return done,
            }
        }
    }

    /// Publishes the events of a batch.
    async fn apply(&mut self, batch: Option<RelayBatch>) -> Result<(), ApiError> {
        let Some(batch) = batch else { return Ok(()) };
        self.is_heard = true;
        let is_next = |last: &(u64, u64)| *last == (batch.publisher, batch.number.wrapping_sub(1));
        if !self.last.as_ref().is_some_and(is_next) {
            self.hub.lose();
        }
        self.last = Some((batch.publisher, batch.number));
        for item in batch.items {
            match item {
                RelayItem::Reached(seq) => self.read_to(seq).await?,
                // A later viewer made the publisher repeat it.
                RelayItem::Event(event) if event.position <= self.seen => {}
                RelayItem::Event(event) => self.relay(event).await?,
                _ => {}
            }
        }
        Ok(())
    }

    async fn relay(&mut self, event: Event) -> Result<(), ApiError> {
        self.read_to(event.position.seq).await?;
        self.seen = event.position;
        if event.position > self.position && event.position.seq == self.position.seq {
            self.position = event.position;
            self.hub.relay(event);
        } else {
            self.hub.lose(); // it came after an entry that it belongs before
        }
        Ok(())
    }

    /// Publishes the entries up to this one.
    async fn read_to(&mut self, seq: u64) -> Result<(), ApiError> {
        if seq > self.position.seq + PAGE as u64 {
            self.hub.grew(seq);
            self.position = Position { seq, after: 0 };
        }
        while self.position.seq < seq {
            let (session, after) = (self.hub.session(), self.position.seq);
            let limit = usize::try_from(seq - after).unwrap_or(PAGE).min(PAGE);
            let page = self.journal.read(&session, after, limit).await?;
            if page.first().is_none_or(|first| first.seq != after + 1) {
                // The journal keeps only the newest entries: readers learn how many are missing.
                self.hub.grew(seq);
                self.position = Position { seq, after: 0 };
            }
            for entry in page {
                if entry.seq <= self.position.seq {
                    continue;
                }
                self.position = Position { seq: entry.seq, after: 0 };
                self.hub.relay_entry(entry);
            }
        }
        Ok(())
    }
}

/// Subscribes to the relayed events of a run, if there is a relay.
pub(super) fn subscribe(relay: Option<&Arc<dyn ChunkRelay>>, run: &RunAddress) -> BoxStream<'static, RelayBatch> {
    relay.map_or_else(|| stream::empty().boxed(), |relay| relay.subscribe(run))
}

impl fmt::Debug for Feeds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Feeds").finish_non_exhaustive()
    }
}
