//! The right to append, and the writer that has it.

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use agent_core::{Ack, Entry, EntryBody, JournalWriter, Result};
use tokio::sync::oneshot;

use super::{
    queue::{Queue, append_job, job},
    thread::WriterThread,
};
use crate::{
    encode::Encoded,
    error::{earlier_failed, lost, thread_ended},
};

/// The leases that a journal holds, by their epochs: those that are renewed. One that could not be given back expires.
#[derive(Clone, Default)]
pub(super) struct Leases(Arc<Mutex<BTreeSet<i64>>>);

impl Leases {
    pub(super) fn all(&self) -> Vec<i64> {
        self.lock().iter().copied().collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<i64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A lease on a session and an agent; given back when it is dropped.
pub(super) struct Lease {
    epoch: i64,
    held: Leases,
    queue: Arc<Queue>,
}

impl Lease {
    pub(super) fn new(epoch: i64, held: Leases, queue: Arc<Queue>) -> Self {
        held.lock().insert(epoch);
        Self { epoch, held, queue }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let epoch = self.epoch;
        self.held.lock().remove(&epoch);
        let release = job(
            move |tables| tables.release_lease(epoch),
            |result| {
                if let Err(e) = result {
                    tracing::warn!(error = %e, "a lease could not be given back; it will expire");
                }
            },
        );
        // If the thread has ended the lease expires.
        let _ = self.queue.push(0, release);
    }
}

/// Appends to one session.
pub(super) struct SqliteWriter {
    // Before the thread, which may be waited for: the lease is then given back.
    lease: Lease,
    session: Arc<str>,
    agent: Arc<str>,
    /// True once an append could not be handed over: what came after it would be kept beside a hole.
    refuses: AtomicBool,
    /// True once an append that was handed over failed: those behind it in the queue fail too.
    failed: Arc<AtomicBool>,
    thread: Arc<WriterThread>,
    blob_bytes: usize,
}

impl SqliteWriter {
    pub(super) fn new(
        lease: Lease,
        session: Arc<str>,
        agent: Arc<str>,
        thread: Arc<WriterThread>,
        blob_bytes: usize,
    ) -> Self {
        Self { lease, session, agent, refuses: AtomicBool::new(false), failed: Arc::default(), thread, blob_bytes }
    }

    fn hand_over(&self, entries: Vec<Entry>) -> Result<oneshot::Receiver<Result<u64>>> {
        if self.refuses.load(Ordering::Acquire) || self.failed.load(Ordering::Acquire) {
            return Err(earlier_failed());
        }
        let ends_run = entries.iter().any(|entry| matches!(entry.body, EntryBody::RunEnded { .. }));
        let entries =
            entries.into_iter().map(|entry| Encoded::new(entry, self.blob_bytes)).collect::<Result<Vec<_>>>()?;
        let bytes = entries.iter().map(Encoded::bytes).sum();
        let (reply, answer) = oneshot::channel();
        let (epoch, session, agent) = (self.lease.epoch, self.session.clone(), self.agent.clone());
        let (failed, fails) = (self.failed.clone(), self.failed.clone());
        let append = append_job(
            ends_run,
            move |tables| {
                if failed.load(Ordering::Acquire) {
                    return Ok(Err(earlier_failed()));
                }
                let first = tables.append(epoch, &session, &entries)?;
                Ok(first.ok_or_else(|| lost(&session, &agent)))
            },
            move |first: Result<u64>| {
                fails.fetch_or(first.is_err(), Ordering::AcqRel);
                drop(reply.send(first));
            },
        );
        self.thread.queue().push(bytes, append)?;
        Ok(answer)
    }
}

impl JournalWriter for SqliteWriter {
    fn append(&self, entries: Vec<Entry>) -> Ack {
        match self.hand_over(entries) {
            Ok(answer) => Ack::Later(Box::pin(async { answer.await.map_err(|_| thread_ended())? })),
            Err(e) => {
                self.refuses.store(true, Ordering::Release);
                Ack::Done(Some(Err(e)))
            }
        }
    }
}
