//! The thread that writes: groups of jobs in, one commit each, and the heartbeat of the leases.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, UNIX_EPOCH},
};

use agent_core::{Error, ErrorKind, Result, new_id};
use rusqlite::{Connection, TransactionBehavior};

use super::{
    builder::Clock,
    connect::Location,
    error::store_error,
    queue::{Queue, Work},
    tables::Tables,
};

/// What a journal has written since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Transactions: each costs one wait for the disk.
    pub commits: u64,
    /// Appends and other changes in them.
    pub jobs: u64,
}

#[derive(Default)]
struct Counters {
    commits: AtomicU64,
    jobs: AtomicU64,
}

/// The thread; dropping it waits until the queue is empty.
pub(super) struct WriterThread {
    queue: Arc<Queue>,
    counters: Arc<Counters>,
    handle: Option<JoinHandle<()>>,
}

impl WriterThread {
    pub(super) fn start(
        connection: Connection,
        location: &Location,
        clock: Clock,
        ttl: Duration,
        group: usize,
        queue_bytes: usize,
    ) -> Result<Self> {
        let (queue, counters) = (Arc::new(Queue::new(queue_bytes)), Arc::<Counters>::default());
        let mut writer = Writer {
            connection,
            path: location.path().to_owned(),
            queue: queue.clone(),
            counters: counters.clone(),
            clock,
            holder: new_id(),
            ttl,
            group,
            renewed: 0,
        };
        writer.renewed = writer.now();
        let spawned = thread::Builder::new().name("agent-journal".into()).spawn(move || writer.run());
        let handle = spawned.map_err(|e| {
            Error::new(ErrorKind::Store, "the journal's thread cannot be started: raise the limit of threads")
                .with_source(e)
        })?;
        Ok(Self { queue, counters, handle: Some(handle) })
    }

    pub(super) fn queue(&self) -> &Arc<Queue> {
        &self.queue
    }

    pub(super) fn stats(&self) -> Stats {
        let (commits, jobs) = (&self.counters.commits, &self.counters.jobs);
        Stats { commits: commits.load(Ordering::Acquire), jobs: jobs.load(Ordering::Acquire) }
    }
}

impl Drop for WriterThread {
    fn drop(&mut self) {
        self.queue.close();
        // Waking a waiter can drop a task that held the last handle: then this is the thread itself.
        if let Some(handle) = self.handle.take()
            && handle.thread().id() != thread::current().id()
            && handle.join().is_err()
        {
            tracing::error!("the journal's thread panicked; what it had not acknowledged is lost");
        }
    }
}

struct Writer {
    connection: Connection,
    path: PathBuf,
    queue: Arc<Queue>,
    counters: Arc<Counters>,
    clock: Clock,
    holder: String,
    ttl: Duration,
    group: usize,
    /// When the leases were last renewed, in milliseconds since 1970.
    renewed: u64,
}

impl Writer {
    fn run(mut self) {
        let _however_it_ends = Abandon(self.queue.clone());
        // A third of the lease: two renewals can fail before it expires.
        let heartbeat = self.ttl / 3;
        while let Some(group) = self.queue.take(self.group, heartbeat) {
            // Nothing came for as long as a heartbeat, or it is time; a clock that was set back counts as well.
            if group.is_empty() || self.now().abs_diff(self.renewed) >= millis(heartbeat) {
                self.renew();
            }
            if !group.is_empty() {
                self.commit(group);
            }
        }
    }

    fn renew(&mut self) {
        let now = self.now();
        match self.tables(&self.connection, now).renew_leases() {
            Ok(()) => self.renewed = now,
            // Not yet a loss, and never a wrong append: every append looks whether its lease is still there.
            Err(e) => tracing::warn!(error = %e, "the leases could not be renewed; trying again"),
        }
    }

    /// Does a group in one transaction. A job that the database refuses is left out, and the others are done again without
    /// it.
    fn commit(&mut self, mut group: Vec<Box<dyn Work>>) {
        while let Err((culprit, e)) = self.attempt(&mut group) {
            match culprit {
                Some(at) => group.remove(at).finish(Some(store_error(&self.path, &e))),
                None => return group.drain(..).for_each(|work| work.finish(Some(store_error(&self.path, &e)))),
            }
        }
        group.into_iter().for_each(|work| work.finish(None));
    }

    /// One try; a failure names the job that it came from, if it came from one.
    fn attempt(&mut self, group: &mut [Box<dyn Work>]) -> Result<(), (Option<usize>, rusqlite::Error)> {
        if group.is_empty() {
            return Ok(());
        }
        let now = self.now();
        let nobody = |e| (None, e);
        let transaction = rusqlite::Transaction::new_unchecked(&self.connection, TransactionBehavior::Immediate);
        let transaction = transaction.map_err(nobody)?;
        let tables = self.tables(&transaction, now);
        for (at, work) in group.iter_mut().enumerate() {
            work.run(&tables).map_err(|e| (Some(at), e))?;
        }
        transaction.commit().map_err(nobody)?;
        self.counters.commits.fetch_add(1, Ordering::AcqRel);
        self.counters.jobs.fetch_add(group.len() as u64, Ordering::AcqRel);
        Ok(())
    }

    fn tables<'a>(&'a self, connection: &'a Connection, now: u64) -> Tables<'a> {
        Tables { connection, holder: &self.holder, now, expires: now.saturating_add(millis(self.ttl)) }
    }

    fn now(&self) -> u64 {
        millis((self.clock)().duration_since(UNIX_EPOCH).unwrap_or_default())
    }
}

/// Tells everybody who still waits when the thread ends, even by a panic.
struct Abandon(Arc<Queue>);

impl Drop for Abandon {
    fn drop(&mut self) {
        self.0.abandon();
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
