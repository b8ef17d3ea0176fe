//! Read operations.

use std::sync::Arc;

use agent_core::{
    Error, ErrorKind, Result,
    journal::{Entry, SessionInfo},
};
use tokio_postgres::{Row, types::ToSql};

use super::{
    readers::{Parameters, Readers},
    summaries::describe,
};
use crate::{blob::Blob, encode::Encoded, prefix::above};

impl Readers {
    /// Returns at most `limit` entries of a session after `after`, oldest first.
    pub(super) async fn entries(&self, session: &str, after: u64, limit: usize) -> Result<Vec<Arc<Entry>>> {
        let after = i64::try_from(after).unwrap_or(i64::MAX);
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let rows = self.rows(|s| &s.read, vec![bytes(session), Box::new(after), Box::new(limit)]).await?;
        let mut last_run: Option<Arc<str>> = None;
        let decode = |row: &Row| {
            let (seq, encoded) = encoded(row, &mut last_run)?;
            encoded.decode(seq).map(Arc::new).map_err(|e| e.with_context("session", session))
        };
        rows.iter().map(decode).collect()
    }

    /// Returns the newest entry of a session.
    pub(super) async fn newest(&self, session: &str) -> Result<Option<Arc<Entry>>> {
        let rows = self.rows(|s| &s.newest, vec![bytes(session)]).await?;
        let newest = rows.first().map_or(0, |row| row.get::<_, i64>(0).cast_unsigned());
        Ok(self.entries(session, newest.saturating_sub(1), 1).await?.pop())
    }

    /// Returns the newest snapshot of a session.
    pub(super) async fn anchor(&self, session: &str) -> Result<Option<Arc<Entry>>> {
        let rows = self.rows(|s| &s.anchor, vec![bytes(session)]).await?;
        let anchor = rows.first().and_then(|row| row.get::<_, Option<i64>>(0));
        let Some(anchor) = anchor else { return Ok(None) };
        Ok(self.entries(session, anchor.cast_unsigned().saturating_sub(1), 1).await?.pop())
    }

    /// True if a run of this id began in a session.
    pub(super) async fn has_run(&self, session: &str, run: &str) -> Result<bool> {
        let rows = self.rows(|s| &s.has_run, vec![bytes(session), bytes(run)]).await?;
        Ok(rows.first().is_some_and(|row| row.get(0)))
    }

    /// Returns the metadata of a session, without its entries.
    pub(super) async fn info(&self, session: &str) -> Result<Option<SessionInfo>> {
        let rows = self.rows(|s| &s.info, vec![bytes(session)]).await?;
        rows.first().map(info).transpose()
    }

    /// Returns the names of all sessions, sorted.
    pub(super) async fn sessions(&self) -> Result<Vec<String>> {
        let rows = self.rows(|s| &s.sessions, Parameters::new()).await?;
        names(&rows)
    }

    /// Returns the newest sequence numbers of these sessions, of those with entries.
    pub(super) async fn heads(&self, sessions: &[Arc<str>]) -> Result<Vec<(String, u64)>> {
        let names: Vec<_> = sessions.iter().map(|name| name.as_bytes().to_vec()).collect();
        let rows = self.rows(|s| &s.heads, vec![Box::new(names)]).await?;
        rows.iter().map(|row| Ok((name(row, 0)?.to_owned(), row.get::<_, i64>(1).cast_unsigned()))).collect()
    }

    /// Returns at most `limit` session names that begin with `prefix` and sort after `after`,
    /// sorted.
    pub(super) async fn list(&self, prefix: &str, after: &str, limit: usize) -> Result<Vec<String>> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let range: Parameters = vec![bytes(after), bytes(prefix), Box::new(above(prefix)), Box::new(limit)];
        names(&self.rows(|s| &s.list, range).await?)
    }
}

fn names(rows: &[Row]) -> Result<Vec<String>> {
    rows.iter().map(|row| name(row, 0).map(ToOwned::to_owned)).collect()
}

/// Encodes a name as a parameter.
fn bytes(name: &str) -> Box<dyn ToSql + Send + Sync> {
    Box::new(name.as_bytes().to_vec())
}

/// Decodes the metadata of a session.
pub(super) fn info(row: &Row) -> Result<SessionInfo> {
    let number = |column| row.get::<_, i64>(column).cast_unsigned();
    let mut info = SessionInfo::default();
    info.title = row.get::<_, Option<&[u8]>>(0).map(text).transpose()?;
    (info.created, info.updated, info.entries, info.runs) = (number(1), number(2), number(3), number(4));
    let agents = row.get::<_, Vec<&[u8]>>(5).into_iter();
    info.agents = agents.map(|agent| text(agent).map(Into::into)).collect::<Result<_>>()?;
    info.active = number(6);
    describe(&mut info, row.get(7));
    Ok(info)
}

pub(super) fn text(bytes: &[u8]) -> Result<String> {
    std::str::from_utf8(bytes).map(str::to_owned).map_err(|_| not_utf8())
}

/// Decodes a row; consecutive rows of the same run share its id.
pub(super) fn encoded(row: &Row, last_run: &mut Option<Arc<str>>) -> Result<(u64, Encoded)> {
    let name = name(row, 1)?;
    let run = match last_run {
        Some(run) if **run == *name => run.clone(),
        _ => last_run.insert(name.into()).clone(),
    };
    let version = u16::try_from(row.get::<_, i32>(3)).map_err(|_| damaged("an invalid entry version"))?;
    let places: Vec<i32> = row.get::<_, Option<_>>(6).unwrap_or_default();
    let hashes: Vec<&[u8]> = row.get::<_, Option<_>>(7).unwrap_or_default();
    let contents: Vec<String> = row.get::<_, Option<_>>(8).unwrap_or_default();
    let blobs = places.into_iter().zip(hashes).zip(contents).map(|((at, hash), text)| {
        let hash = hash.try_into().map_err(|_| damaged("a hash of invalid length"))?;
        Ok(Blob { at: usize::try_from(at).unwrap_or(usize::MAX), hash, text })
    });
    let encoded = Encoded {
        run,
        time: row.get::<_, i64>(2).cast_unsigned(),
        version,
        body: row.get(4),
        blobs: blobs.collect::<Result<_>>()?,
        parts: usize::try_from(row.get::<_, i32>(5)).unwrap_or(usize::MAX),
        told: None,
        changes: Vec::new(),
    };
    Ok((row.get::<_, i64>(0).cast_unsigned(), encoded))
}

pub(super) fn name(row: &Row, column: usize) -> Result<&str> {
    std::str::from_utf8(row.get(column)).map_err(|_| not_utf8())
}

fn not_utf8() -> Error {
    damaged("a name that is not UTF-8")
}

fn damaged(what: &str) -> Error {
    Error::new(ErrorKind::Store, format!("the journal is damaged: it contains {what}; restore a copy"))
}
