//! Batches of entries between a writer and the thread that stores them.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicU64, Ordering},
};

use agent_core::{
    Result,
    journal::{Ack, Entry, EntryBody},
};
use tokio::sync::oneshot;

use crate::{
    encode::Encoded,
    error::{earlier_failed, thread_ended},
    project::Tracked,
};

/// Entries of one append, for the writer thread.
pub(crate) struct Batch {
    pub(crate) entries: Vec<Encoded>,
    /// Approximate memory usage in bytes.
    pub(crate) bytes: usize,
    /// True if a run ends in this batch.
    pub(crate) ends_run: bool,
    pub(crate) receipt: Receipt,
}

/// Reply channel of a batch.
pub(crate) struct Receipt {
    pub(crate) place: Place,
    reply: oneshot::Sender<Result<u64>>,
}

impl Receipt {
    /// Answers with the first sequence number. The failure of a batch fails all later batches of
    /// the writer.
    pub(crate) fn answer(self, first: Result<u64>) {
        if first.is_err() {
            self.place.first_failed.fetch_min(self.place.number, Ordering::AcqRel);
        }
        drop(self.reply.send(first));
    }
}

/// Position of a batch among those of its writer.
#[derive(Clone)]
pub(crate) struct Place {
    number: u64,
    first_failed: Arc<AtomicU64>,
}

impl Place {
    /// True if an earlier batch failed, so that this one must fail too.
    pub(crate) fn is_behind_a_failure(&self) -> bool {
        self.number > self.first_failed.load(Ordering::Acquire)
    }
}

/// Accepts a writer's batches until one fails: storing later batches would leave a gap in the log.
pub(crate) struct Gate {
    /// Number of the next batch; none once a batch could not be enqueued. Locked while a batch is
    /// enqueued, so that numbers follow the order of the queue. Earlier batches are in flight and
    /// may still be stored.
    next: Mutex<Option<u64>>,
    /// Runs of this writer, for the projection.
    tracked: Mutex<Tracked>,
    /// Number of the first batch that failed after it was enqueued.
    first_failed: Arc<AtomicU64>,
}

impl Default for Gate {
    fn default() -> Self {
        Self { next: Mutex::new(Some(0)), tracked: Mutex::default(), first_failed: Arc::new(AtomicU64::new(u64::MAX)) }
    }
}

impl Gate {
    /// Encodes entries, with strings of at least `blob_bytes` stored separately, and enqueues them
    /// with `push`.
    pub(crate) fn append(&self, entries: Vec<Entry>, blob_bytes: usize, push: impl FnOnce(Batch) -> Result<()>) -> Ack {
        match self.enqueue(entries, blob_bytes, push) {
            Ok(answer) => Ack::Later(Box::pin(async { answer.await.map_err(|_| thread_ended())? })),
            Err(e) => Ack::Done(Some(Err(e))),
        }
    }

    fn enqueue(
        &self,
        entries: Vec<Entry>,
        blob_bytes: usize,
        push: impl FnOnce(Batch) -> Result<()>,
    ) -> Result<oneshot::Receiver<Result<u64>>> {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        // Restored once the batch is enqueued.
        let number = next.take().filter(|number| *number <= self.first_failed.load(Ordering::Acquire));
        let place = Place { number: number.ok_or_else(earlier_failed)?, first_failed: self.first_failed.clone() };
        let after = place.number + 1;
        let ends_run = entries.iter().any(|entry| matches!(entry.body, EntryBody::RunEnded { .. }));
        let mut tracked = self.tracked.lock().unwrap_or_else(PoisonError::into_inner);
        let encode = |entry| Encoded::new(entry, blob_bytes, &mut tracked);
        let entries = entries.into_iter().map(encode).collect::<Result<Vec<_>>>()?;
        let bytes = entries.iter().map(Encoded::bytes).sum();
        let (reply, answer) = oneshot::channel();
        push(Batch { entries, bytes, ends_run, receipt: Receipt { place, reply } })?;
        *next = Some(after);
        Ok(answer)
    }
}
