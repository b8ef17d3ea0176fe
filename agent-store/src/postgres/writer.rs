//! The right to append, and the writer that has it.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use agent_core::{Ack, Entry, EntryBody, JournalWriter, Result};
use tokio::sync::{mpsc, oneshot};

use super::{
    job::{Append, Job},
    thread::JournalThread,
};
use crate::{
    encode::Encoded,
    error::{earlier_failed, thread_ended},
};

/// A lease on a session and an agent; given back when it is dropped.
pub(super) struct Lease {
    epoch: i64,
    session: Arc<str>,
    queue: mpsc::UnboundedSender<Job>,
}

impl Lease {
    pub(super) fn new(epoch: i64, session: Arc<str>, queue: mpsc::UnboundedSender<Job>) -> Self {
        Self { epoch, session, queue }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // If the thread has ended the lease expires.
        let _ = self.queue.send(Job::Release { session: self.session.clone(), epoch: self.epoch });
    }
}

/// Appends to one session.
pub(super) struct PostgresWriter {
    // Before the thread, which may be waited for: the lease is then given back.
    lease: Lease,
    agent: Arc<str>,
    /// True once an append failed: what came after it would be kept beside a hole.
    failed: Arc<AtomicBool>,
    blob_bytes: usize,
    thread: Arc<JournalThread>,
}

impl PostgresWriter {
    pub(super) fn new(lease: Lease, agent: Arc<str>, blob_bytes: usize, thread: Arc<JournalThread>) -> Self {
        Self { lease, agent, failed: Arc::default(), blob_bytes, thread }
    }

    fn hand_over(&self, entries: Vec<Entry>) -> Result<oneshot::Receiver<Result<u64>>> {
        if self.failed.load(Ordering::Acquire) {
            return Err(earlier_failed());
        }
        let ends = entries.iter().any(|entry| matches!(entry.body, EntryBody::RunEnded { .. }));
        let encode = |entry| Encoded::new(entry, self.blob_bytes);
        let entries = entries.into_iter().map(encode).collect::<Result<Vec<_>>>()?;
        let waiting = self.thread.room(entries.iter().map(Encoded::bytes).sum())?;
        let (reply, answer) = oneshot::channel();
        self.thread.push(Job::Append(Append {
            epoch: self.lease.epoch,
            session: self.lease.session.clone(),
            agent: self.agent.clone(),
            entries,
            ends,
            failed: self.failed.clone(),
            reply,
            waiting,
        }))?;
        Ok(answer)
    }
}

impl JournalWriter for PostgresWriter {
    fn append(&self, entries: Vec<Entry>) -> Ack {
        match self.hand_over(entries) {
            Ok(answer) => Ack::Later(Box::pin(async { answer.await.map_err(|_| thread_ended())? })),
            Err(e) => {
                self.failed.store(true, Ordering::Release);
                Ack::Done(Some(Err(e)))
            }
        }
    }
}
