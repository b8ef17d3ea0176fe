//! Tests of the SQLite journal, beside the conformance tests.

#![cfg(feature = "sqlite")]

use crate::common;
mod crash;
mod damage;
mod files;
mod folding;
mod leases;
mod upkeep;
mod writing;

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use agent_store::{SqliteBuilder, SqliteJournal};
use common::{append, heard, kind, texts};
use rusqlite::Connection;
use tempfile::TempDir;

/// Place for a journal.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a directory"))
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("agent.db")
    }

    fn open(&self) -> SqliteJournal {
        SqliteJournal::open(self.path()).expect("opens")
    }

    /// Opens the file like another program.
    fn sqlite(&self) -> Connection {
        Connection::open(self.path()).expect("opens")
    }

    /// Opens the file and holds its only write lock until `COMMIT`.
    fn locked(&self) -> Connection {
        let other = self.sqlite();
        other.execute_batch("BEGIN IMMEDIATE").expect("the lock is free");
        other
    }
}

/// Clock that a test moves. Leases last an hour by it, so that real delays of a test do not matter.
#[derive(Clone)]
struct FakeClock(Arc<AtomicU64>);

impl FakeClock {
    const TTL: Duration = Duration::from_secs(3600);

    fn new() -> Self {
        Self(Arc::new(AtomicU64::new(1_000_000_000)))
    }

    fn advance(&self, by: Duration) {
        self.0.fetch_add(u64::try_from(by.as_millis()).expect("small"), Ordering::SeqCst);
    }

    /// Moves the clock by a number of lease durations, forwards or backwards.
    fn jump(&self, leases: i64) {
        let by = leases * i64::try_from(Self::TTL.as_millis()).expect("small");
        self.0.fetch_add(by.cast_unsigned(), Ordering::SeqCst);
    }

    fn open(&self, place: &Place) -> SqliteJournal {
        self.open_with(place, Self::TTL)
    }

    fn open_with(&self, place: &Place, ttl: Duration) -> SqliteJournal {
        self.builder(place).lease_ttl(ttl).open().expect("opens")
    }

    fn builder(&self, place: &Place) -> SqliteBuilder {
        let now = self.0.clone();
        let clock = move || -> SystemTime { UNIX_EPOCH + Duration::from_millis(now.load(Ordering::SeqCst)) };
        SqliteJournal::builder(place.path()).lease_ttl(Self::TTL).clock(clock)
    }
}
