//! Integrity check, repair and vacuum of the file.

use agent_core::{Error, ErrorKind, Result};
use rusqlite::Connection;
use sha2::{Digest, Sha256};

use super::{SqliteJournal, error::store_error, tables::Tables};
use crate::Problem;

impl SqliteJournal {
    /// Checks the file, the sequence numbers, and whether entries and large strings can be read and
    /// match their hashes, and reports the remains of dead writers. Reads everything; changes
    /// nothing.
    ///
    /// # Errors
    /// [`ErrorKind::Store`] if the file cannot be read at all.
    pub async fn check(&self) -> Result<Vec<Problem>> {
        let now = self.0.thread.now();
        let mut problems = self.0.readers.run(move |reader| reader.problems(now)).await?;
        if problems.iter().all(Problem::is_repairable) {
            problems.extend(crate::check(self).await?);
        }
        Ok(problems)
    }

    /// Removes the harmless problems that [`check`](Self::check) reports, without loss of data:
    /// unreferenced large strings and expired leases. Returns the removed problems.
    ///
    /// # Errors
    /// [`ErrorKind::Store`] if the file cannot be written.
    pub async fn repair(&self) -> Result<Vec<Problem>> {
        self.job(|tables| tables.repair().map(Ok)).await
    }

    /// Rebuilds the summaries of all sessions and runs from their entries. Only needed where they are
    /// wrong: sessions of earlier releases are included automatically.
    ///
    /// # Errors
    /// [`ErrorKind::Store`] if the file cannot be written.
    pub async fn rebuild(&self) -> Result<()> {
        self.job(|tables| tables.invalidate().map(Ok)).await?;
        self.0.searched.forget().await;
        self.project().await
    }

    /// Returns the space of deleted sessions to the file system. Rewrites the file, which
    /// temporarily needs as much space again and blocks appends.
    ///
    /// # Errors
    /// [`ErrorKind::Store`] if there is not enough space, or another process uses the file.
    pub async fn vacuum(&self) -> Result<()> {
        let location = self.0.readers.location().clone();
        let vacuum = move || {
            let connection = location.open_writer(true)?;
            let done = connection.execute_batch("VACUUM; PRAGMA wal_checkpoint(TRUNCATE)");
            done.map_err(|e| store_error(location.path(), &e))
        };
        let cut_short = |e| Error::new(ErrorKind::Store, "maintenance of the journal was interrupted").with_source(e);
        tokio::task::spawn_blocking(vacuum).await.map_err(cut_short)?
    }
}

/// Returns the problems that only SQLite can detect; leases that end at `now` have expired.
pub(super) fn problems(connection: &Connection, now: u64) -> rusqlite::Result<Vec<Problem>> {
    let mut problems = Vec::new();
    let mut check = connection.prepare("PRAGMA integrity_check(20)")?;
    for line in check.query_map((), |row| row.get::<_, String>(0))? {
        problems.extend(Some(line?).filter(|line| line != "ok").map(Problem::Damaged));
    }
    if !problems.is_empty() {
        return Ok(problems);
    }
    let mut blobs = connection.prepare("SELECT hash, content FROM blob")?;
    let mut rows = blobs.query(())?;
    while let Some(row) = rows.next()? {
        let hash = row.get_ref(0)?.as_blob()?;
        if Sha256::digest(row.get_ref(1)?.as_bytes()?)[..] != *hash {
            problems.push(Problem::WrongBlob { hash: hex(hash) });
        }
    }
    // A log whose last entries are missing has no gap.
    let mut heads = connection.prepare(
        "SELECT name, head, (SELECT coalesce(max(seq), 0) FROM entry WHERE entry.session = session.id) AS newest
         FROM session WHERE head <> newest",
    )?;
    let cut = heads.query_map((), |row| {
        Ok(Problem::Gap { session: row.get(0)?, seq: row.get::<_, i64>(2)?.cast_unsigned() + 1 })
    })?;
    problems.extend(cut.collect::<rusqlite::Result<Vec<_>>>()?);
    problems.extend(harmless(connection, now)?);
    Ok(problems)
}

const UNUSED: &str = "FROM blob WHERE NOT EXISTS (SELECT 1 FROM part WHERE part.blob = blob.id)";

fn harmless(connection: &Connection, now: u64) -> rusqlite::Result<Vec<Problem>> {
    let mut unused = connection.prepare(&format!("SELECT hash {UNUSED}"))?;
    let unused = unused.query_map((), |row| Ok(Problem::UnusedBlob { hash: hex(row.get_ref(0)?.as_blob()?) }))?;
    let mut problems = unused.collect::<rusqlite::Result<Vec<_>>>()?;
    let mut expired = connection.prepare("SELECT session, agent FROM lease WHERE expires <= ?1")?;
    let expired = expired
        .query_map([now.cast_signed()], |row| Ok(Problem::ExpiredLease { session: row.get(0)?, agent: row.get(1)? }))?;
    problems.extend(expired.collect::<rusqlite::Result<Vec<_>>>()?);
    Ok(problems)
}

impl Tables<'_> {
    /// Removes the harmless problems and returns them.
    fn repair(&self) -> rusqlite::Result<Vec<Problem>> {
        let removed = harmless(self.connection, self.now)?;
        self.connection.execute(&format!("DELETE {UNUSED}"), ())?;
        self.connection.execute("DELETE FROM lease WHERE expires <= ?1", [self.now.cast_signed()])?;
        Ok(removed)
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
