//! Publication of a run's transient events to viewers in other processes.

use std::mem;

use agent_core::{Event, EventKind, model::Chunk, run::new_id};
use agent_dispatch::{ChunkRelay, RelayBatch, RelayItem, RunAddress};
use futures::{Stream, StreamExt};
use tokio::time::{Instant, sleep_until};

/// Maximum size in bytes of the text that is kept for later viewers of a message.
const BACKLOG: usize = 1 << 20;

/// Publishes the events of a run through a relay while somebody watches it, until the events end.
/// Consecutive chunks within the relay's [interval](ChunkRelay::interval) are merged. A viewer that
/// comes in the middle of a message receives its chunks from the beginning.
///
/// # Cancellation safety
/// Dropping the future loses events that are not published yet, and nothing else.
pub(super) async fn relay_events(
    relay: &dyn ChunkRelay,
    run: &RunAddress,
    mut events: impl Stream<Item = Event> + Unpin,
) {
    let mut outbox = Outbox::new();
    let mut watched = relay.watched(run, 0);
    let mut next = Instant::now();
    loop {
        let is_ready = outbox.has_pending() && relay.is_watched(run);
        if is_ready && (outbox.is_urgent() || next <= Instant::now()) {
            relay.publish(run, outbox.batch());
            next = Instant::now() + relay.interval();
            continue;
        }
        tokio::select! {
            biased;
            subscription = &mut watched => {
                watched = relay.watched(run, subscription);
                outbox.rewind();
                next = Instant::now();
            }
            () = sleep_until(next), if is_ready => {}
            event = events.next() => match event {
                Some(event) => outbox.push(event, relay.is_watched(run)),
                None => break,
            },
        }
    }
    if outbox.has_pending() && relay.is_watched(run) {
        relay.publish(run, outbox.batch());
    }
}

/// Events to publish, and those since the newest entry, which a new viewer needs.
struct Outbox {
    publisher: u64,
    number: u64,
    /// Published items since the newest entry.
    backlog: Vec<RelayItem>,
    pending: Vec<RelayItem>,
    /// Number of pending items that were published before, and must stay as they are: viewers
    /// recognise them by their positions.
    published: usize,
    /// Approximate size of the items in bytes.
    bytes: usize,
}

impl Outbox {
    fn new() -> Self {
        let publisher = u64::from_str_radix(&new_id()[16..], 16).unwrap_or_default();
        Self { publisher, number: 0, backlog: Vec::new(), pending: Vec::new(), published: 0, bytes: 0 }
    }

    fn has_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// True if the last item is an entry, which viewers read from the journal at once.
    fn is_urgent(&self) -> bool {
        matches!(self.pending.last(), Some(RelayItem::Reached(_)))
    }

    fn push(&mut self, event: Event, is_watched: bool) {
        if event.position.seq == 0 {
            return; // before the first entry, an event has no position in the session
        }
        if event.position.after == 0 {
            self.backlog.clear();
            self.bytes = 0;
            if !is_watched || self.is_urgent() {
                // An entry supersedes the transient events before it for viewers that come later.
                let keep = if is_watched { self.pending.len() - 1 } else { 0 };
                self.pending.truncate(keep);
                self.published = self.published.min(keep);
            }
            return self.pending.push(RelayItem::Reached(event.position.seq));
        }
        self.bytes += size(&event.kind);
        if self.bytes > BACKLOG {
            self.backlog.clear();
            self.bytes = 0;
            if !is_watched {
                self.pending.clear(); // later viewers receive this message from the journal
                self.published = 0;
            }
        }
        if self.pending.len() > self.published
            && let Some(RelayItem::Event(last)) = self.pending.last_mut()
            && merge(last, &event)
        {
            return;
        }
        self.pending.push(RelayItem::Event(event));
    }

    /// Publishes everything since the newest entry again: earlier viewers recognise it.
    fn rewind(&mut self) {
        self.published += self.backlog.len();
        self.pending = mem::take(&mut self.backlog).into_iter().chain(mem::take(&mut self.pending)).collect();
    }

    fn batch(&mut self) -> RelayBatch {
        let items = mem::take(&mut self.pending);
        match items.iter().rposition(|item| matches!(item, RelayItem::Reached(_))) {
            Some(newest) => self.backlog = items[newest..].to_vec(),
            None => self.backlog.extend_from_slice(&items),
        }
        self.published = 0;
        let number = self.number;
        self.number += 1;
        RelayBatch::new(self.publisher, number, items)
    }
}

/// Appends a chunk to the previous one if both add to the same block. The position becomes that of
/// the appended one.
fn merge(last: &mut Event, event: &Event) -> bool {
    if last.ids.run_id != event.ids.run_id || last.position.seq != event.position.seq {
        return false;
    }
    let (EventKind::Chunk(last_chunk), EventKind::Chunk(chunk)) = (&mut last.kind, &event.kind) else { return false };
    let (text, more) = match (last_chunk, chunk) {
        (Chunk::Text { index, delta }, Chunk::Text { index: same, delta: more })
        | (Chunk::Reasoning { index, delta }, Chunk::Reasoning { index: same, delta: more })
        | (Chunk::Arguments { index, delta }, Chunk::Arguments { index: same, delta: more })
            if index == same =>
        {
            (delta, more)
        }
        _ => return false,
    };
    text.push_str(more);
    last.position = event.position;
    true
}

/// Approximate size of an event in bytes.
fn size(kind: &EventKind) -> usize {
    match kind {
        EventKind::Chunk(
            Chunk::Text { delta, .. } | Chunk::Reasoning { delta, .. } | Chunk::Arguments { delta, .. },
        ) => delta.len(),
        EventKind::ToolProgress { progress, .. } => progress.as_str().map_or(256, str::len),
        _ => 256,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use agent_core::{event::Position, run::RunIds};
    use agent_dispatch::MemoryRelay;
    use futures::stream;

    use super::*;

    fn event(seq: u64, after: u32, kind: &EventKind) -> Event {
        let mut ids = RunIds::root("support", "garden");
        (ids.run_id, ids.root_run_id) = ("r".into(), "r".into());
        let text = serde_json::json!({"position": Position { seq, after }, "ids": ids, "kind": kind});
        serde_json::from_value(text).expect("an event")
    }

    fn text(seq: u64, after: u32, delta: &str) -> Event {
        event(seq, after, &EventKind::Chunk(Chunk::Text { index: 0, delta: delta.into() }))
    }

    fn texts(batch: &RelayBatch) -> Vec<(u64, u32, String)> {
        let told = batch.items.iter().map(|item| match item {
            RelayItem::Reached(seq) => (*seq, 0, String::new()),
            RelayItem::Event(event) => match &event.kind {
                EventKind::Chunk(Chunk::Text { delta, .. }) => {
                    (event.position.seq, event.position.after, delta.clone())
                }
                _ => (event.position.seq, event.position.after, "other".to_owned()),
            },
            _ => unreachable!("there are two kinds"),
        });
        told.collect()
    }

    #[test]
    fn consecutive_chunks_of_a_block_are_one_and_an_entry_stands_between() {
        let mut outbox = Outbox::new();
        [text(3, 1, "a"), text(3, 2, "b"), event(4, 0, &EventKind::RunStarted), text(4, 1, "c")]
            .into_iter()
            .for_each(|event| outbox.push(event, true));
        let told = texts(&outbox.batch());
        assert_eq!(told, [(3, 2, "ab".into()), (4, 0, String::new()), (4, 1, "c".into())]);
    }

    #[test]
    fn a_later_viewer_receives_the_message_in_progress_in_the_same_pieces() {
        let mut outbox = Outbox::new();
        outbox.push(event(4, 0, &EventKind::RunStarted), true);
        outbox.push(event(4, 1, &EventKind::StepStarted { step: 1 }), true);
        outbox.push(text(4, 2, "a"), true);
        let first = outbox.batch();
        outbox.push(text(4, 3, "b"), true);
        outbox.rewind();
        let again = outbox.batch();
        assert_eq!((again.number, &again.items[..3]), (1, &first.items[..]));
        assert_eq!(texts(&again)[3], (4, 3, "b".into()));
        outbox.push(event(5, 0, &EventKind::RunStarted), true);
        outbox.rewind();
        assert_eq!(texts(&outbox.batch()), [(5, 0, String::new())]);
    }

    #[test]
    fn a_chunk_is_not_merged_with_one_that_was_published_before() {
        let mut outbox = Outbox::new();
        outbox.push(text(4, 2, "a"), true);
        let first = outbox.batch();
        outbox.rewind();
        outbox.push(text(4, 3, "b"), true);
        outbox.push(text(4, 4, "c"), true);
        let again = outbox.batch();
        assert_eq!((&again.items[..1], texts(&again)[1].clone()), (&first.items[..], (4, 4, "bc".into())));
    }

    #[test]
    fn a_run_that_nobody_watches_keeps_only_what_is_newer_than_its_newest_entry() {
        let mut outbox = Outbox::new();
        for seq in 1..100 {
            outbox.push(event(seq, 0, &EventKind::RunStarted), false);
            outbox.push(text(seq, 1, "a"), false);
            outbox.push(text(seq, 2, "b"), false);
        }
        assert_eq!(texts(&outbox.batch()), [(99, 0, String::new()), (99, 2, "ab".into())]);
        (1..10_000).for_each(|after| outbox.push(text(99, after, &"x".repeat(1_000)), false));
        assert!(outbox.bytes <= BACKLOG + 1_000 && outbox.pending.len() <= 1);
    }

    #[tokio::test(start_paused = true)]
    async fn events_are_published_while_somebody_watches() {
        let (relay, run) = (Arc::new(MemoryRelay::default()), RunAddress::new("support", "garden", "r"));
        let (send, events) = tokio::sync::mpsc::unbounded_channel::<Event>();
        let publishing = tokio::spawn({
            let (relay, run) = (relay.clone(), run.clone());
            let events = stream::unfold(events, async |mut events| events.recv().await.map(|event| (event, events)));
            async move { relay_events(&*relay, &run, Box::pin(events)).await }
        });
        send.send(event(3, 0, &EventKind::RunStarted)).expect("it listens");
        send.send(text(3, 1, "Hel")).expect("it listens");
        tokio::task::yield_now().await;
        let mut batches = relay.subscribe(&run);
        let first = batches.next().await.expect("a batch");
        assert_eq!(texts(&first), [(3, 0, String::new()), (3, 1, "Hel".into())]);
        send.send(text(3, 2, "lo")).expect("it listens");
        assert_eq!(texts(&batches.next().await.expect("a batch")), [(3, 2, "lo".into())]);
        drop(send);
        publishing.await.expect("it ends with the events");
    }
}
