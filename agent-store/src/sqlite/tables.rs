//! What the thread does to the tables, inside a transaction.

use rusqlite::{Connection, OptionalExtension, named_params};

use super::queue::Outcome;
use crate::{
    blob::Blob,
    encode::{Encoded, Summary},
    error::{held, in_use},
};

/// The tables as one transaction sees them. Times are milliseconds since 1970.
pub(super) struct Tables<'a> {
    pub(super) connection: &'a Connection,
    /// Names this journal among all that ever opened the file.
    pub(super) holder: &'a str,
    pub(super) now: u64,
    /// When a lease that is taken or renewed now ends.
    pub(super) expires: u64,
}

impl Tables<'_> {
    /// Takes the lease of a session and an agent, if it is free or has expired; gives its epoch.
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
            0 => Err(held(session, agent)),
            _ => Ok(self.connection.last_insert_rowid()),
        })
    }

    pub(super) fn renew_lease(&self, epoch: i64) -> rusqlite::Result<()> {
        let mut renew = self.connection.prepare_cached("UPDATE lease SET expires = ?1 WHERE epoch = ?2")?;
        renew.execute((self.expires.cast_signed(), epoch))?;
        Ok(())
    }

    pub(super) fn release_lease(&self, epoch: i64) -> Outcome<()> {
        self.connection.prepare_cached("DELETE FROM lease WHERE epoch = ?1")?.execute([epoch])?;
        Ok(Ok(()))
    }

    /// Appends to a session and gives the first sequence number; `None` if the lease is another's by now.
    pub(super) fn append(&self, epoch: i64, session: &str, entries: &[Encoded]) -> rusqlite::Result<Option<u64>> {
        if !self.connection.prepare_cached("SELECT 1 FROM lease WHERE epoch = ?1")?.exists([epoch])? {
            return Ok(None);
        }
        let mut advance = self.connection.prepare_cached(
            "INSERT INTO session (name, head, created, updated) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (name) DO UPDATE
             SET head = head + excluded.head, updated = max(updated, excluded.updated)
             RETURNING id, head",
        )?;
        let (count, summary) = (entries.len() as u64, Summary::of(entries));
        let row = (session, count.cast_signed(), summary.first.cast_signed(), summary.newest.cast_signed());
        let (id, head): (i64, i64) = advance.query_row(row, |row| Ok((row.get(0)?, row.get(1)?)))?;
        self.describe(id, &summary)?;
        let first = head.cast_unsigned() - count + 1;
        let mut insert = self.connection.prepare_cached(
            "INSERT INTO entry (session, seq, run, time, version, body, parts) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )?;
        let mut run: Option<(&str, i64)> = None;
        for (seq, entry) in (first..).zip(entries) {
            let run_id = match run {
                Some((name, run_id)) if *name == *entry.run => run_id,
                _ => self.run_id(id, &entry.run)?,
            };
            run = Some((&entry.run, run_id));
            let (seq, time) = (seq.cast_signed(), entry.time.cast_signed());
            insert.execute((id, seq, run_id, time, entry.version, &entry.body, entry.blobs.len() as i64))?;
            if !entry.blobs.is_empty() {
                self.keep_blobs(self.connection.last_insert_rowid(), &entry.blobs)?;
            }
        }
        Ok(Some(first))
    }

    /// Notes what a batch says of its session; few do.
    fn describe(&self, session: i64, summary: &Summary<'_>) -> rusqlite::Result<()> {
        if summary.runs == 0 && summary.title.is_none() {
            return Ok(());
        }
        let mut describe = self
            .connection
            .prepare_cached("UPDATE session SET runs = runs + ?2, title = coalesce(?3, title) WHERE id = ?1")?;
        describe.execute((session, summary.runs.cast_signed(), summary.title))?;
        let mut add = self
            .connection
            .prepare_cached("INSERT INTO agent (session, name) VALUES (?1, ?2) ON CONFLICT DO NOTHING")?;
        summary.agents.iter().try_for_each(|agent| add.execute((session, agent)).map(drop))
    }

    /// Keeps an entry's large strings, each once for all.
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

    /// The number that stands for a run.
    fn run_id(&self, session: i64, run: &str) -> rusqlite::Result<i64> {
        let mut find = self.connection.prepare_cached("SELECT id FROM run WHERE session = ?1 AND name = ?2")?;
        if let Some(id) = find.query_row((session, run), |row| row.get(0)).optional()? {
            return Ok(id);
        }
        self.connection.prepare_cached("INSERT INTO run (session, name) VALUES (?1, ?2)")?.execute((session, run))?;
        Ok(self.connection.last_insert_rowid())
    }

    /// Deletes a session that nobody holds; true if there was one.
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
