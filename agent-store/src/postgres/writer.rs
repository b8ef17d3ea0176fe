//! Lease of a session, and its writer.

use std::sync::Arc;

use agent_core::{
    BoxFuture, Result,
    journal::{Ack, Entry, JournalWriter},
};
use tokio::sync::mpsc;

use super::{
    job::{Append, Job},
    thread::{JournalThread, Work},
};
use crate::{
    answer::ask,
    batch::Gate,
    error::{lost, thread_ended},
};

/// Lease on a session and an agent; released when dropped.
pub(super) struct Lease {
    epoch: i64,
    session: Arc<str>,
    queue: mpsc::UnboundedSender<Work>,
}

impl Lease {
    pub(super) fn new(epoch: i64, session: Arc<str>, queue: mpsc::UnboundedSender<Work>) -> Self {
        Self { epoch, session, queue }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // If the thread has ended, the lease expires.
        let _ = self.queue.send(Work::Write(Job::Release { session: self.session.clone(), epoch: self.epoch }));
    }
}

/// Writer of one session.
pub(super) struct PostgresWriter {
    // Declared before the thread, whose drop may wait: the lease is then already released.
    lease: Lease,
    agent: Arc<str>,
    gate: Gate,
    blob_bytes: usize,
    thread: Arc<JournalThread>,
}

impl PostgresWriter {
    pub(super) fn new(lease: Lease, agent: Arc<str>, blob_bytes: usize, thread: Arc<JournalThread>) -> Self {
        Self { lease, agent, gate: Gate::default(), blob_bytes, thread }
    }
}

impl JournalWriter for PostgresWriter {
    fn append(&self, entries: Vec<Entry>) -> Ack {
        self.gate.append(entries, self.blob_bytes, |batch| {
            let waiting = self.thread.room(batch.bytes)?;
            let (epoch, session, agent) = (self.lease.epoch, self.lease.session.clone(), self.agent.clone());
            self.thread.push(Job::Append(Append { epoch, session, agent, batch, waiting }))
        })
    }

    fn verify_lease(&self) -> BoxFuture<'static, Result<()>> {
        let Lease { epoch, ref session, .. } = self.lease;
        let (renewals, session, agent) = (self.thread.renewals().clone(), session.clone(), self.agent.clone());
        self.thread.leases().verify_lease(epoch, move || {
            let asking = ask(|reply| renewals.send((epoch, reply)).map_err(|_| thread_ended()));
            let (session, agent) = (session.clone(), agent.clone());
            async move { if asking.await? { Ok(()) } else { Err(lost(&session, &agent)) } }
        })
    }
}
