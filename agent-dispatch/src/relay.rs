//! Relay of transient events from the process that executes a run to those that have viewers.

use std::{
    collections::HashMap,
    fmt,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use futures::stream::{self, BoxStream, StreamExt};
use serde::{Deserialize, Serialize};
use tokio::sync::{
    broadcast::{self, error::RecvError},
    watch,
};

use crate::RunAddress;
use agent_core::Event;

/// Number of batches that a subscriber of a [`MemoryRelay`] may be behind.
const BEHIND: usize = 1024;

/// Transports the transient events of runs (chunks, progress reports, events of sub-agents) from
/// the process that executes a run to the processes that have viewers.
///
/// A relay is best effort: batches may be lost or late, which costs smoothness and never content,
/// since subscribers read every durable event from the [`Journal`](agent_core::Journal). A publisher
/// sends only while somebody [watches](Self::is_watched) the run.
#[async_trait]
pub trait ChunkRelay: Send + Sync + 'static {
    /// Sends a batch to the subscribers of a run, without waiting. Batches of one publisher arrive
    /// in order, or are lost.
    fn publish(&self, run: &RunAddress, batch: RelayBatch);

    /// Subscribes to the batches of a run; publishers learn that it is watched. Dropping the stream
    /// ends the subscription.
    fn subscribe(&self, run: &RunAddress) -> BoxStream<'static, RelayBatch>;

    /// True if the run has a subscriber, in any process, as far as this process knows.
    fn is_watched(&self, run: &RunAddress) -> bool;

    /// Waits until a subscription to the run begins. Returns a number to pass as `since` the next
    /// time, so that a subscription in between is not missed; begin with 0. A publisher then sends
    /// again what the new subscriber needs.
    async fn watched(&self, run: &RunAddress, since: u64) -> u64;

    /// Minimum interval between two batches of a run: a publisher coalesces the events in between.
    /// Default: none.
    fn interval(&self) -> Duration {
        Duration::ZERO
    }
}

/// Events that a publisher sends together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RelayBatch {
    /// Random id of the publisher: one attempt at a run.
    pub publisher: u64,
    /// Number of the batch, from 0: a gap shows that batches were lost.
    pub number: u64,
    /// The events in order.
    pub items: Vec<RelayItem>,
}

impl RelayBatch {
    /// Creates a batch.
    pub fn new(publisher: u64, number: u64, items: Vec<RelayItem>) -> Self {
        Self { publisher, number, items }
    }
}

/// Item of a [`RelayBatch`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RelayItem {
    /// The journal contains the session's entries up to this sequence number: their events come
    /// before the items that follow.
    Reached(u64),
    /// A transient event. It may stand for several consecutive chunks of a block, and then has the
    /// position of the last one.
    Event(Event),
}

/// [`ChunkRelay`] between tasks of one process. Cheap to clone; clones share the subscriptions.
///
/// ```
/// use agent_dispatch::{ChunkRelay, MemoryRelay, RelayBatch, RelayItem, RunAddress};
/// use futures::StreamExt;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let (relay, run) = (MemoryRelay::default(), RunAddress::new("support", "garden", "r1"));
/// assert!(!relay.is_watched(&run));
/// let mut batches = relay.subscribe(&run);
/// relay.publish(&run, RelayBatch::new(7, 0, vec![RelayItem::Reached(3)]));
/// assert_eq!(batches.next().await.map(|batch| batch.number), Some(0));
/// # }
/// ```
#[derive(Clone, Default)]
pub struct MemoryRelay(Arc<Inner>);

#[derive(Default)]
struct Inner {
    topics: Mutex<HashMap<RunAddress, Topic>>,
    /// Number of subscriptions so far.
    subscriptions: AtomicU64,
}

/// Subscriptions to one run.
#[derive(Clone)]
struct Topic {
    batches: broadcast::Sender<RelayBatch>,
    /// Number of the newest subscription.
    newest: watch::Sender<u64>,
}

impl Topic {
    fn new() -> Self {
        Self { batches: broadcast::Sender::new(BEHIND), newest: watch::Sender::new(0) }
    }

    fn is_used(&self) -> bool {
        self.batches.receiver_count() > 0 || self.newest.receiver_count() > 0
    }
}

impl MemoryRelay {
    /// Calls `work` with the topic of a run, which is created if necessary. Removes unused topics
    /// before it adds one.
    fn with_topic<T>(&self, run: &RunAddress, work: impl FnOnce(&Topic) -> T) -> T {
        let mut topics = self.0.topics.lock().unwrap_or_else(PoisonError::into_inner);
        if !topics.contains_key(run) {
            topics.retain(|_, topic| topic.is_used());
        }
        work(topics.entry(run.clone()).or_insert_with(Topic::new))
    }

    /// Returns the topic of a run, if somebody subscribed to it or waits for it.
    fn topic(&self, run: &RunAddress) -> Option<Topic> {
        self.0.topics.lock().unwrap_or_else(PoisonError::into_inner).get(run).cloned()
    }
}

#[async_trait]
impl ChunkRelay for MemoryRelay {
    fn publish(&self, run: &RunAddress, batch: RelayBatch) {
        if let Some(topic) = self.topic(run) {
            // Without a subscriber, nobody needs the batch.
            let _ = topic.batches.send(batch);
        }
    }

    fn subscribe(&self, run: &RunAddress) -> BoxStream<'static, RelayBatch> {
        let number = self.0.subscriptions.fetch_add(1, Ordering::Relaxed) + 1;
        let batches = self.with_topic(run, |topic| {
            let batches = topic.batches.subscribe();
            topic.newest.send_if_modified(|newest| {
                let is_newer = number > *newest;
                *newest = number.max(*newest);
                is_newer
            });
            batches
        });
        stream::unfold(batches, async |mut batches| {
            loop {
                match batches.recv().await {
                    Ok(batch) => return Some((batch, batches)),
                    Err(RecvError::Lagged(_)) => {} // the number of the next batch shows the gap
                    Err(RecvError::Closed) => return None,
                }
            }
        })
        .boxed()
    }

    fn is_watched(&self, run: &RunAddress) -> bool {
        self.topic(run).is_some_and(|topic| topic.batches.receiver_count() > 0)
    }

    async fn watched(&self, run: &RunAddress, since: u64) -> u64 {
        loop {
            let mut newest = self.with_topic(run, |topic| topic.newest.subscribe());
            // The sender is dropped only if the topic had no receiver, which this one is.
            if let Ok(newest) = newest.wait_for(|newest| *newest > since).await {
                return *newest;
            }
        }
    }
}

impl fmt::Debug for MemoryRelay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryRelay").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    fn run(name: &str) -> RunAddress {
        RunAddress::new("support", "garden", name)
    }

    #[tokio::test]
    async fn a_publisher_learns_of_each_new_subscription_and_of_the_end_of_the_last() {
        let relay = MemoryRelay::default();
        let watched = run("r");
        let mut waiting = Box::pin(relay.watched(&watched, 0));
        assert!((&mut waiting).now_or_never().is_none() && !relay.is_watched(&run("r")));
        let first = relay.subscribe(&run("r"));
        let since = waiting.await;
        assert!(relay.is_watched(&run("r")));
        assert!(relay.watched(&run("r"), since).now_or_never().is_none());
        let second = relay.subscribe(&run("r"));
        assert!(relay.watched(&run("r"), since).await > since);
        drop((first, second));
        assert!(!relay.is_watched(&run("r")));
    }

    #[tokio::test]
    async fn a_subscription_is_noticed_though_the_topic_was_removed_meanwhile() {
        let relay = MemoryRelay::default();
        drop(relay.subscribe(&run("r")));
        let since = relay.watched(&run("r"), 0).await;
        drop(relay.subscribe(&run("other")));
        let _batches = relay.subscribe(&run("r"));
        assert!(relay.watched(&run("r"), since).await > since);
    }

    #[tokio::test]
    async fn a_subscriber_that_lags_sees_a_gap_and_blocks_nobody() {
        let relay = MemoryRelay::default();
        let batches = relay.subscribe(&run("r"));
        let last = BEHIND as u64 + 9;
        (0..=last).for_each(|n| relay.publish(&run("r"), RelayBatch::new(1, n, Vec::new())));
        let numbers: Vec<_> = batches.take(BEHIND).map(|batch| batch.number).collect().await;
        assert_eq!((numbers[0], numbers.last()), (10, Some(&last)));
    }
}
