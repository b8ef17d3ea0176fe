//! Read connections, beside the writer thread.

use std::{
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use agent_core::{
    Error, ErrorKind, Result,
    journal::{Entry, SessionInfo},
};
use rusqlite::{Connection, OptionalExtension, Row};
use tokio::sync::Semaphore;

use super::{connect::Location, error::store_error, upkeep::problems};
use crate::{Problem, blob::Blob, encode::Encoded, prefix::above};

/// Pool of read connections, opened on demand and kept.
pub(super) struct Readers {
    location: Location,
    idle: Mutex<Vec<Reader>>,
    permits: Arc<Semaphore>,
}

/// Maximum number of concurrent reads. More would wait for the same disk.
const CONNECTIONS: usize = 4;

impl Readers {
    pub(super) fn new(location: Location) -> Self {
        Self { location, idle: Mutex::default(), permits: Arc::new(Semaphore::new(CONNECTIONS)) }
    }

    pub(super) fn location(&self) -> &Location {
        &self.location
    }

    /// Reads on one of tokio's blocking threads.
    pub(super) async fn run<T, F>(self: &Arc<Self>, read: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&Reader) -> Result<T> + Send + 'static,
    {
        let permit = self.permits.clone().acquire_owned().await.expect("the semaphore is never closed");
        let readers = self.clone();
        let reading = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            let idle = readers.idle().pop();
            let reader = idle.map_or_else(|| Reader::connect(&readers.location), Ok)?;
            let result = read(&reader);
            readers.idle().push(reader);
            result
        });
        reading.await.map_err(|e| Error::new(ErrorKind::Store, "reading the journal was interrupted").with_source(e))?
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Reader>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Read connection.
pub(super) struct Reader {
    pub(super) connection: Connection,
    pub(super) path: Arc<Path>,
}

impl Reader {
    fn connect(location: &Location) -> Result<Self> {
        Ok(Self { connection: location.open_reader()?, path: location.path().into() })
    }

    /// Returns at most `limit` entries of a session after `after`, oldest first.
    pub(super) fn entries(&self, session: &str, after: u64, limit: usize) -> Result<Vec<Arc<Entry>>> {
        let after = i64::try_from(after).unwrap_or(i64::MAX);
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let sql = "SELECT entry.seq, run.name, entry.time, entry.version, entry.body, entry.parts, entry.id
                   FROM entry JOIN run ON run.id = entry.run
                   WHERE entry.session = (SELECT id FROM session WHERE name = ?1) AND entry.seq > ?2
                   ORDER BY entry.seq LIMIT ?3";
        let read = || {
            let snapshot = self.connection.unchecked_transaction()?; // consistent view of entries and their parts
            let mut statement = snapshot.prepare_cached(sql)?;
            let mut last_run: Option<Arc<str>> = None;
            let rows = statement.query_map((session, after, limit), |row| {
                let (seq, mut encoded) = encoded(row, &mut last_run)?;
                if encoded.parts > 0 {
                    encoded.blobs = blobs(&snapshot, row.get(6)?)?;
                }
                Ok((seq, encoded))
            })?;
            rows.collect::<rusqlite::Result<Vec<_>>>()
        };
        let rows = read().map_err(|e| store_error(&self.path, &e))?;
        let decode = |(seq, encoded): (u64, Encoded)| {
            encoded.decode(seq).map(Arc::new).map_err(|e| e.with_context("session", session))
        };
        rows.into_iter().map(decode).collect()
    }

    /// Returns the newest entry of a session.
    pub(super) fn newest(&self, session: &str) -> Result<Option<Arc<Entry>>> {
        let read = || {
            let sql = "SELECT coalesce(max(seq), 0) FROM entry
                       WHERE session = (SELECT id FROM session WHERE name = ?1)";
            self.connection.prepare_cached(sql)?.query_row([session], |row| row.get::<_, i64>(0))
        };
        let newest = read().map_err(|e| store_error(&self.path, &e))?.cast_unsigned();
        Ok(self.entries(session, newest.saturating_sub(1), 1)?.pop())
    }

    /// Returns the newest snapshot of a session.
    pub(super) fn anchor(&self, session: &str) -> Result<Option<Arc<Entry>>> {
        let read = || {
            let mut find = self.connection.prepare_cached("SELECT anchor FROM session WHERE name = ?1")?;
            find.query_row([session], |row| row.get::<_, Option<i64>>(0)).optional()
        };
        let anchor = read().map_err(|e| store_error(&self.path, &e))?.flatten();
        let Some(anchor) = anchor else { return Ok(None) };
        Ok(self.entries(session, anchor.cast_unsigned().saturating_sub(1), 1)?.pop())
    }

    /// True if a session has an entry of this run.
    pub(super) fn has_run(&self, session: &str, run: &str) -> Result<bool> {
        let read = || {
            let sql = "SELECT EXISTS (SELECT 1 FROM run WHERE session = (SELECT id FROM session WHERE name = ?1) AND name = ?2)";
            self.connection.prepare_cached(sql)?.query_row((session, run), |row| row.get(0))
        };
        read().map_err(|e| store_error(&self.path, &e))
    }

    /// Returns the metadata of a session, without its entries.
    pub(super) fn info(&self, session: &str) -> Result<Option<SessionInfo>> {
        let read = || {
            let snapshot = self.connection.unchecked_transaction()?; // consistent view of both tables
            let sql = format!("SELECT {INFO} FROM session WHERE name = ?1");
            let found = snapshot.prepare_cached(&sql)?.query_row([session], |row| info(&snapshot, row));
            found.optional()
        };
        read().map_err(|e| store_error(&self.path, &e))
    }

    /// Returns the problems of the file, including the remains of dead writers.
    pub(super) fn problems(&self, now: u64) -> Result<Vec<Problem>> {
        problems(&self.connection, now).map_err(|e| store_error(&self.path, &e))
    }

    /// Returns at most `limit` session names that begin with `prefix` and sort after `after`,
    /// sorted.
    pub(super) fn list(&self, prefix: &str, after: &str, limit: usize) -> Result<Vec<String>> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let sql = "SELECT name FROM session WHERE name > ?1 AND name >= ?2 AND name < CAST(?3 AS TEXT)
                   ORDER BY name LIMIT ?4";
        let read = || {
            let mut statement = self.connection.prepare_cached(sql)?;
            let names = statement.query_map((after, prefix, above(prefix), limit), |row| row.get(0))?;
            names.collect::<rusqlite::Result<Vec<_>>>()
        };
        read().map_err(|e| store_error(&self.path, &e))
    }

    /// Returns the names of all sessions, sorted.
    pub(super) fn sessions(&self) -> Result<Vec<String>> {
        let read = || {
            let mut statement = self.connection.prepare_cached("SELECT name FROM session ORDER BY name")?;
            let names = statement.query_map((), |row| row.get(0))?;
            names.collect::<rusqlite::Result<Vec<_>>>()
        };
        read().map_err(|e| store_error(&self.path, &e))
    }
}

/// Columns of [`info`].
pub(super) const INFO: &str = "id, title, created, updated, head, runs, active, metadata";

/// Decodes the metadata of a session.
pub(super) fn info(connection: &Connection, row: &Row<'_>) -> rusqlite::Result<SessionInfo> {
    let number = |column| row.get::<_, i64>(column).map(i64::cast_unsigned);
    let mut info = SessionInfo::default();
    (info.title, info.created, info.updated) = (row.get(1)?, number(2)?, number(3)?);
    (info.entries, info.runs, info.active) = (number(4)?, number(5)?, number(6)?);
    let metadata = row.get::<_, Option<String>>(7)?;
    info.metadata = metadata.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
    let mut agents = connection.prepare_cached("SELECT name FROM agent WHERE session = ?1 ORDER BY id")?;
    let agents = agents.query_map([row.get::<_, i64>(0)?], |row| row.get::<_, Arc<str>>(0))?;
    info.agents = agents.collect::<rusqlite::Result<_>>()?;
    Ok(info)
}

/// Decodes a row; consecutive rows of the same run share its id.
pub(super) fn encoded(row: &Row<'_>, last_run: &mut Option<Arc<str>>) -> rusqlite::Result<(u64, Encoded)> {
    let name = row.get_ref(1)?.as_str()?;
    let run = match last_run {
        Some(run) if **run == *name => run.clone(),
        _ => last_run.insert(name.into()).clone(),
    };
    let seq = row.get::<_, i64>(0)?.cast_unsigned();
    let time = row.get::<_, i64>(2)?.cast_unsigned();
    Ok((
        seq,
        Encoded {
            run,
            time,
            version: row.get(3)?,
            body: row.get(4)?,
            blobs: Vec::new(),
            parts: size(row, 5)?,
            told: None,
            changes: Vec::new(),
        },
    ))
}

/// Returns the large strings of an entry, in order.
pub(super) fn blobs(connection: &Connection, entry: i64) -> rusqlite::Result<Vec<Blob>> {
    let mut statement = connection.prepare_cached(
        "SELECT part.at, blob.hash, blob.content FROM part JOIN blob ON blob.id = part.blob
         WHERE part.entry = ?1 ORDER BY part.at",
    )?;
    let parts =
        statement.query_map([entry], |row| Ok(Blob { at: size(row, 0)?, hash: row.get(1)?, text: row.get(2)? }))?;
    parts.collect()
}

fn size(row: &Row<'_>, column: usize) -> rusqlite::Result<usize> {
    row.get::<_, u32>(column).map(|size| size as usize)
}
