//! Lease of a session, and its writer.

use std::sync::Arc;

use agent_core::{
    BoxFuture, Result,
    journal::{Ack, Entry, JournalWriter},
};

use super::{
    queue::{Queue, append_job, job},
    tables::Tables,
    thread::WriterThread,
};
use crate::{
    answer::ask,
    batch::{Batch, Gate},
    error::{earlier_failed, lost},
    leases::Leases,
};

/// Lease on a session and an agent; released when dropped.
pub(super) struct Lease {
    epoch: i64,
    held: Leases,
    queue: Arc<Queue>,
}

impl Lease {
    /// Creates the lease that was granted to a request at the time `asked`.
    pub(super) fn new(epoch: i64, asked: u64, held: Leases, queue: Arc<Queue>) -> Self {
        held.take(epoch, asked);
        Self { epoch, held, queue }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let epoch = self.epoch;
        self.held.give_back(epoch);
        let release = job(
            move |tables| tables.release_lease(epoch),
            |result| {
                if let Err(e) = result {
                    tracing::warn!(error = %e, "a lease could not be released; it will expire");
                }
            },
        );
        // If the thread has ended, the lease expires.
        let _ = self.queue.push(0, release);
    }
}

/// Writer of one session.
pub(super) struct SqliteWriter {
    // Declared before the thread, whose drop may wait: the lease is then already released.
    lease: Lease,
    session: Arc<str>,
    agent: Arc<str>,
    gate: Gate,
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
        Self { lease, session, agent, gate: Gate::default(), thread, blob_bytes }
    }
}

impl JournalWriter for SqliteWriter {
    fn append(&self, entries: Vec<Entry>) -> Ack {
        self.gate.append(entries, self.blob_bytes, |Batch { entries, bytes, ends_run, receipt }| {
            let (epoch, session, agent) = (self.lease.epoch, self.session.clone(), self.agent.clone());
            let place = receipt.place.clone();
            let run = move |tables: &Tables<'_>| {
                if place.is_behind_a_failure() {
                    return Ok(Err(earlier_failed()));
                }
                let first = tables.append(epoch, &session, &entries)?;
                Ok(first.ok_or_else(|| lost(&session, &agent)))
            };
            self.thread.queue().push(bytes, append_job(ends_run, run, move |first| receipt.answer(first)))
        })
    }

    fn verify_lease(&self) -> BoxFuture<'static, Result<()>> {
        let Lease { epoch, ref held, ref queue } = self.lease;
        let (queue, leases, session, agent) = (queue.clone(), held.clone(), self.session.clone(), self.agent.clone());
        held.verify_lease(epoch, move || {
            let (leases, session, agent) = (leases.clone(), session.clone(), agent.clone());
            ask(|reply| {
                let renew = move |tables: &Tables<'_>| Ok(Ok((tables.now, tables.renew_lease(epoch)?)));
                let deliver = move |renewed: Result<(u64, bool)>| {
                    drop(reply.send(renewed.and_then(|(now, is_held)| {
                        leases.renewed(epoch, now, is_held);
                        if is_held { Ok(()) } else { Err(lost(&session, &agent)) }
                    })));
                };
                queue.push(0, job(renew, deliver))
            })
        })
    }
}
