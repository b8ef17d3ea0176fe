//! Writer thread: commits groups of jobs and renews the leases.

use std::{
    cell::RefCell,
    path::PathBuf,
    sync::Arc,
    thread::{self, JoinHandle},
    time::{Duration, UNIX_EPOCH},
};

use agent_core::{Error, ErrorKind, Result, run::new_id};
use rusqlite::{Connection, TransactionBehavior};

use super::{
    builder::Clock,
    connect::Location,
    error::store_error,
    queue::{Queue, Work},
    tables::{Known, Tables},
};
use crate::{
    Durability,
    leases::Leases,
    stats::{Counters, Stats},
    writing::Writing,
};

/// The writer thread; dropping it waits until the queue is empty.
pub(super) struct WriterThread {
    queue: Arc<Queue>,
    leases: Leases,
    counters: Arc<Counters>,
    handle: Option<JoinHandle<()>>,
}

impl WriterThread {
    pub(super) fn start(connection: Connection, location: &Location, clock: Clock, writing: Writing) -> Result<Self> {
        let (queue, counters) = (Arc::new(Queue::new(writing.queue_bytes)), Arc::<Counters>::default());
        let leases = Leases::new(writing.lease_ttl, move || now(&clock));
        let mut writer = Writer {
            connection,
            path: location.path().to_owned(),
            queue: queue.clone(),
            leases: leases.clone(),
            counters: counters.clone(),
            holder: new_id(),
            writing,
            renewed: 0,
            lazy: writing.durability == Durability::Async,
            unsynced: None,
            known: RefCell::default(),
        };
        writer.renewed = writer.leases.now();
        let spawned = thread::Builder::new().name("agent-journal".into()).spawn(move || writer.run());
        let handle = spawned.map_err(|e| {
            Error::new(ErrorKind::Store, "the journal's thread cannot be started: raise the limit of threads")
                .with_source(e)
        })?;
        Ok(Self { queue, leases, counters, handle: Some(handle) })
    }

    pub(super) fn queue(&self) -> &Arc<Queue> {
        &self.queue
    }

    /// Returns the leases that the thread renews.
    pub(super) fn leases(&self) -> &Leases {
        &self.leases
    }

    /// Returns the current time in milliseconds since 1970, by the journal's clock.
    pub(super) fn now(&self) -> u64 {
        self.leases.now()
    }

    pub(super) fn stats(&self) -> Stats {
        self.counters.stats()
    }
}

impl Drop for WriterThread {
    fn drop(&mut self) {
        self.queue.close();
        // Waking a waiter can drop a task that held the last handle: then this code runs on the
        // thread itself.
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
    leases: Leases,
    counters: Arc<Counters>,
    holder: String,
    writing: Writing,
    /// Time of the last lease renewal, in milliseconds since 1970.
    renewed: u64,
    /// True if commits do not wait for the disk.
    lazy: bool,
    /// Time of the oldest commit that may not be on disk, in milliseconds since 1970.
    unsynced: Option<u64>,
    known: RefCell<Known>,
}

/// Maximum time until a commit is on disk.
const LAG: Duration = Duration::from_secs(1);

impl Writer {
    fn run(mut self) {
        let _however_it_ends = Abandon(self.queue.clone());
        let (most, heartbeat) = (self.writing.group, self.writing.heartbeat());
        while let Some(group) = self.queue.take(most, self.unsynced.map_or(heartbeat, |_| LAG.min(heartbeat))) {
            if self.unsynced.is_some_and(|since| self.now().abs_diff(since) >= millis(LAG)) {
                self.sync();
            }
            // A clock that was set back also counts.
            if self.now().abs_diff(self.renewed) >= millis(heartbeat) {
                self.renew();
            }
            if !group.is_empty() {
                self.commit(group);
            }
        }
    }

    fn renew(&mut self) {
        let now = self.now();
        let tables = self.tables(&self.connection, now);
        let renew = |epoch| tables.renew_lease(epoch).map(|is_held| self.leases.renewed(epoch, now, is_held));
        match self.leases.all().into_iter().try_for_each(renew) {
            Ok(()) => self.renewed = now,
            // No lease is lost yet, and no append can go wrong: every append checks its lease.
            Err(e) => tracing::warn!(error = %e, "the leases could not be renewed; trying again"),
        }
    }

    /// Flushes commits that only the operating system has to the disk.
    fn sync(&mut self) {
        // SQLite syncs the log before it copies it into the database.
        match self.connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", (), |_| Ok(())) {
            Ok(()) => self.synced(),
            Err(e) => tracing::warn!(error = %e, "the journal could not be flushed to disk; trying again"),
        }
    }

    fn synced(&mut self) {
        self.unsynced = None;
        self.counters.synced();
    }

    /// Runs a group of jobs in one transaction. A job that the database rejects is excluded, and
    /// the others are repeated without it.
    fn commit(&mut self, mut group: Vec<Box<dyn Work>>) {
        let lazily = self.lazy && !group.iter().any(|work| work.ends_run());
        if self.lazy && !lazily {
            self.set_synchronous("FULL");
        }
        while let Err((culprit, e)) = self.attempt(&mut group) {
            self.known.borrow_mut().clear();
            match culprit {
                Some(at) => group.remove(at).finish(Some(store_error(&self.path, &e))),
                None => group.drain(..).for_each(|work| work.finish(Some(store_error(&self.path, &e)))),
            }
        }
        if lazily {
            self.unsynced = self.unsynced.or(Some(self.now()));
        } else if self.lazy {
            self.set_synchronous("NORMAL");
            self.synced();
        }
        group.into_iter().for_each(|work| work.finish(None));
    }

    fn set_synchronous(&self, mode: &str) {
        if let Err(e) = self.connection.pragma_update(None, "synchronous", mode) {
            tracing::warn!(error = %e, "the journal's durability could not be changed");
        }
    }

    /// Makes one attempt; an error names the job that caused it, if one did.
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
        self.counters.committed(group.len());
        Ok(())
    }

    fn tables<'a>(&'a self, connection: &'a Connection, now: u64) -> Tables<'a> {
        Tables {
            connection,
            holder: &self.holder,
            now,
            expires: now.saturating_add(millis(self.writing.lease_ttl)),
            known: &self.known,
        }
    }

    fn now(&self) -> u64 {
        self.leases.now()
    }
}

/// Guard that answers all waiting callers with an error when the thread ends, even by a panic.
struct Abandon(Arc<Queue>);

impl Drop for Abandon {
    fn drop(&mut self) {
        self.0.abandon();
    }
}

/// Returns the current time in milliseconds since 1970.
fn now(clock: &Clock) -> u64 {
    millis(clock().duration_since(UNIX_EPOCH).unwrap_or_default())
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
