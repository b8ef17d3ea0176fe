//! Statements of the writer thread, within a transaction.

use std::{cell::RefCell, collections::HashMap, sync::Arc};

use agent_core::{Error, ErrorKind};
use rusqlite::{Connection, OptionalExtension, named_params};

use super::{project::At, queue::Outcome};
use crate::{
    blob::Blob,
    encode::{Encoded, Summary},
    error::in_use,
    project::space,
};

/// Tables within one transaction. Times are milliseconds since 1970.
pub(super) struct Tables<'a> {
    pub(super) connection: &'a Connection,
    /// Unique name of this journal among all that ever opened the file.
    pub(super) holder: &'a str,
    pub(super) now: u64,
    /// Expiry of a lease that is taken or renewed now.
    pub(super) expires: u64,
    /// Cached append positions.
    pub(super) known: &'a RefCell<Known>,
}

/// Append position of each lease, by its epoch: saves a lookup at the next append. Nobody deletes
/// these rows while the lease exists. Positions that were read in a transaction that is rolled back
/// must be discarded.
pub(super) type Known = HashMap<i64, Place>;

/// Append position of a lease.
pub(super) struct Place {
    pub(super) session: i64,
    /// Last sequence number of the session.
    head: i64,
    /// Run of the last entry and its row id.
    run: Option<(Arc<str>, i64)>,
}

impl Tables<'_> {
    /// Takes the lease of a session and an agent, if it is free or has expired, and returns its
    /// epoch.
    pub(super) fn take_lease(&self, session: &str, agent: &str) -> Outcome<i64> {
        let mut expire = self
            .connection
            .prepare_cached("DELETE FROM lease WHERE session = :session AND agent = :agent AND expires <= :now")?;
        expire.execute(named_params! {":session": session, ":agent": agent, ":now": self.now.cast_signed()})?;
        let mut take = self.connection.prepare_cached(
            "INSERT INTO lease (session, agent, holder, expires) VALUES (:session, :agent, :holder, :expires)
             ON CONFLICT (session, agent) DO NOTHING",
        )?;
        let taken = take.execute(named_params! {
            ":session": session, ":agent": agent, ":holder": self.holder, ":expires": self.expires.cast_signed(),
        })?;
        Ok(match taken {
            0 => Err(held(session, agent, self.lease_left(session, agent)?)),
            _ => Ok(self.connection.last_insert_rowid()),
        })
    }

    /// Milliseconds after which the lease of a session and an agent expires unless it is renewed.
    fn lease_left(&self, session: &str, agent: &str) -> rusqlite::Result<u64> {
        let mut expires =
            self.connection.prepare_cached("SELECT expires FROM lease WHERE session = ?1 AND agent = ?2")?;
        let expires: i64 = expires.query_row((session, agent), |row| row.get(0))?;
        Ok(expires.cast_unsigned().saturating_sub(self.now))
    }

    /// Renews a lease. Returns `false` if another holder has it by now.
    pub(super) fn renew_lease(&self, epoch: i64) -> rusqlite::Result<bool> {
        let mut renew = self.connection.prepare_cached("UPDATE lease SET expires = ?1 WHERE epoch = ?2")?;
        Ok(renew.execute((self.expires.cast_signed(), epoch))? > 0)
    }

    pub(super) fn release_lease(&self, epoch: i64) -> Outcome<()> {
        self.known.borrow_mut().remove(&epoch);
        self.connection.prepare_cached("DELETE FROM lease WHERE epoch = ?1")?.execute([epoch])?;
        Ok(Ok(()))
    }

    /// Appends to a session and returns the first sequence number; `None` if the lease was lost.
    pub(super) fn append(&self, epoch: i64, session: &str, entries: &[Encoded]) -> rusqlite::Result<Option<u64>> {
        let summary = Summary::of(entries);
        let count = entries.len() as i64;
        let known = self.known.borrow_mut().remove(&epoch);
        let mut place = match known {
            Some(place) if self.advance(epoch, &place, count, &summary)? => place,
            _ => match self.place(epoch, session, &summary)? {
                Some(place) if self.advance(epoch, &place, count, &summary)? => place,
                _ => return Ok(None),
            },
        };
        self.describe(place.session, place.head, &summary)?;
        let mut insert = self.connection.prepare_cached(
            "INSERT INTO entry (session, seq, run, time, version, body, parts) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )?;
        let first = place.head + 1;
        for entry in entries {
            place.head += 1;
            let run = match &place.run {
                Some((name, run)) if *name == entry.run => *run,
                _ => place.run.insert((entry.run.clone(), self.run_id(place.session, &entry.run)?)).1,
            };
            let (parts, time) = (entry.blobs.len() as i64, entry.time.cast_signed());
            insert.execute((place.session, place.head, run, time, entry.version, &entry.body, parts))?;
            if !entry.blobs.is_empty() {
                self.keep_blobs(self.connection.last_insert_rowid(), &entry.blobs)?;
            }
            let at = At { session: place.session, name: session, run, seq: place.head, time };
            entry.changes.iter().try_for_each(|change| self.project(&at, change))?;
        }
        self.known.borrow_mut().insert(epoch, place);
        Ok(Some(first.cast_unsigned()))
    }

    /// Finds the append position of a lease: the row of its session, which is created if missing.
    /// `None` if the lease was lost.
    fn place(&self, epoch: i64, session: &str, summary: &Summary<'_>) -> rusqlite::Result<Option<Place>> {
        if !self.connection.prepare_cached("SELECT 1 FROM lease WHERE epoch = ?1")?.exists([epoch])? {
            return Ok(None);
        }
        let mut add = self.connection.prepare_cached(
            "INSERT INTO session (name, head, created, updated, space) VALUES (?1, 0, ?2, 0, ?3)
             ON CONFLICT (name) DO NOTHING",
        )?;
        add.execute((session, summary.first.cast_signed(), space(session)))?;
        let mut find = self.connection.prepare_cached("SELECT id, head FROM session WHERE name = ?1")?;
        find.query_row([session], |row| Ok(Some(Place { session: row.get(0)?, head: row.get(1)?, run: None })))
    }

    /// Reserves sequence numbers for `count` entries. Returns `false` if the lease was lost or
    /// another writer has appended.
    fn advance(&self, epoch: i64, place: &Place, count: i64, summary: &Summary<'_>) -> rusqlite::Result<bool> {
        let mut advance = self.connection.prepare_cached(
            "UPDATE session SET head = head + ?4, updated = max(updated, ?5), projected = projected + iif(projected = head, ?4, 0)
             WHERE id = ?2 AND head = ?3 AND EXISTS (SELECT 1 FROM lease WHERE epoch = ?1)",
        )?;
        let newest = summary.newest.cast_signed();
        Ok(advance.execute((epoch, place.session, place.head, count, newest))? > 0)
    }

    /// Updates the session metadata that a batch after `head` changes; few batches do.
    pub(super) fn describe(&self, session: i64, head: i64, summary: &Summary<'_>) -> rusqlite::Result<()> {
        if summary.runs == 0 && summary.title.is_none() && summary.anchor.is_none() && summary.active == 0 {
            return Ok(());
        }
        let mut describe = self.connection.prepare_cached(
            "UPDATE session SET runs = runs + ?2, title = coalesce(?3, title), anchor = coalesce(?4, anchor),
                 active = max(active, ?5)
             WHERE id = ?1",
        )?;
        let anchor = summary.anchor.map(|n| head + n);
        let active = summary.active.cast_signed();
        describe.execute((session, summary.runs.cast_signed(), summary.title, anchor, active))?;
        let mut add = self
            .connection
            .prepare_cached("INSERT INTO agent (session, name) VALUES (?1, ?2) ON CONFLICT DO NOTHING")?;
        summary.agents.iter().try_for_each(|agent| add.execute((session, agent)).map(drop))
    }

    /// Stores the large strings of an entry, each once for all entries.
    fn keep_blobs(&self, entry: i64, blobs: &[Blob]) -> rusqlite::Result<()> {
        let mut keep = self
            .connection
            .prepare_cached("INSERT INTO blob (hash, content) VALUES (?1, ?2) ON CONFLICT (hash) DO NOTHING")?;
        let mut refer = self
            .connection
            .prepare_cached("INSERT INTO part (entry, at, blob) SELECT ?1, ?2, id FROM blob WHERE hash = ?3")?;
        for Blob { at, hash, text } in blobs {
            keep.execute((hash, text))?;
            refer.execute((entry, *at as i64, hash))?;
        }
        Ok(())
    }

    /// Returns the row id of a run.
    pub(super) fn run_id(&self, session: i64, run: &str) -> rusqlite::Result<i64> {
        let mut find = self.connection.prepare_cached("SELECT id FROM run WHERE session = ?1 AND name = ?2")?;
        if let Some(id) = find.query_row((session, run), |row| row.get(0)).optional()? {
            return Ok(id);
        }
        self.connection.prepare_cached("INSERT INTO run (session, name) VALUES (?1, ?2)")?.execute((session, run))?;
        Ok(self.connection.last_insert_rowid())
    }

    /// Deletes a session without active leases. Returns `true` if it existed.
    pub(super) fn delete(&self, session: &str) -> Outcome<bool> {
        let held = "SELECT 1 FROM lease WHERE session = ?1 AND expires > ?2";
        if self.connection.prepare_cached(held)?.exists((session, self.now.cast_signed()))? {
            return Ok(Err(in_use(session)));
        }
        let mut deleted = 0;
        for statement in [
            "DELETE FROM lease WHERE session = ?1",
            "DELETE FROM entry WHERE session = (SELECT id FROM session WHERE name = ?1)",
            "DELETE FROM run WHERE session = (SELECT id FROM session WHERE name = ?1)",
            "DELETE FROM session WHERE name = ?1",
        ] {
            deleted = self.connection.prepare_cached(statement)?.execute([session])?;
        }
        Ok(Ok(deleted > 0))
    }
}

/// Another writer has the lease.
fn held(session: &str, agent: &str, left_ms: u64) -> Error {
    let left = left_ms.div_ceil(1000);
    let message = format!(
        "agent '{agent}' already runs in session '{session}'; if its process has died, the session is free in {left} s"
    );
    Error::new(ErrorKind::Busy, message)
}
