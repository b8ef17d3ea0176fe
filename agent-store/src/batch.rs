//! Batches on their way from a writer to the thread that keeps them.

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
};

/// What an append hands to the thread.
pub(crate) struct Batch {
    pub(crate) entries: Vec<Encoded>,
    /// How much memory it holds, roughly.
    pub(crate) bytes: usize,
    /// True if a run ends here.
    pub(crate) ends_run: bool,
    pub(crate) receipt: Receipt,
}

/// Who waits for a batch.
pub(crate) struct Receipt {
    pub(crate) place: Place,
    reply: oneshot::Sender<Result<u64>>,
}

impl Receipt {
    /// Answers with the first sequence number. A batch that failed fails those behind it.
    pub(crate) fn answer(self, first: Result<u64>) {
        if first.is_err() {
            self.place.first_failed.fetch_min(self.place.number, Ordering::AcqRel);
        }
        drop(self.reply.send(first));
    }
}

/// A batch's place among those of its writer.
#[derive(Clone)]
pub(crate) struct Place {
    number: u64,
    first_failed: Arc<AtomicU64>,
}

impl Place {
    /// True if a batch before this one failed: then this one must too.
    pub(crate) fn is_behind_a_failure(&self) -> bool {
        self.number > self.first_failed.load(Ordering::Acquire)
    }
}

/// Lets a writer's batches through until one fails: what came after it would be kept beside a hole.
pub(crate) struct Gate {
    /// The next batch's number; none once a batch could not be handed over. Locked while one is, so that the numbers are in
    /// the order of the queue. Those before it are on their way and may still be kept.
    next: Mutex<Option<u64>>,
    /// The number of the first batch that failed after it was handed over.
    first_failed: Arc<AtomicU64>,
}

impl Default for Gate {
    fn default() -> Self {
        Self { next: Mutex::new(Some(0)), first_failed: Arc::new(AtomicU64::new(u64::MAX)) }
    }
}

impl Gate {
    /// Encodes entries, with strings from `blob_bytes` on apart, and hands them over with `push`.
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
        // Put back when the batch is handed over.
        let number = next.take().filter(|number| *number <= self.first_failed.load(Ordering::Acquire));
        let place = Place { number: number.ok_or_else(earlier_failed)?, first_failed: self.first_failed.clone() };
        let after = place.number + 1;
        let ends_run = entries.iter().any(|entry| matches!(entry.body, EntryBody::RunEnded { .. }));
        let encode = |entry| Encoded::new(entry, blob_bytes);
        let entries = entries.into_iter().map(encode).collect::<Result<Vec<_>>>()?;
        let bytes = entries.iter().map(Encoded::bytes).sum();
        let (reply, answer) = oneshot::channel();
        push(Batch { entries, bytes, ends_run, receipt: Receipt { place, reply } })?;
        *next = Some(after);
        Ok(answer)
    }
}
