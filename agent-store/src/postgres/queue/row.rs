//! A job's row.

use std::collections::BTreeMap;

use agent_core::{Answer, Error, ErrorKind, Result, dispatch::StandingKind};
use tokio_postgres::Row;

use crate::queue::record::Record;

/// A job's row as it was read.
pub(super) struct Stored {
    pub(super) id: i64,
    /// The server's clock when it was read.
    pub(super) now: u64,
    body: String,
    answers: Option<String>,
    taken: Option<String>,
    standing: String,
    /// The rest, on a job that is not decoded yet.
    rest: Rest,
}

struct Rest {
    ready_at: i64,
    failures: i32,
    begun: bool,
    receipt: Option<i64>,
    worker: String,
    expires: i64,
    error: Option<String>,
    created: i64,
    changed: i64,
}

impl Stored {
    pub(super) fn read(row: &Row) -> Result<Self, tokio_postgres::Error> {
        Ok(Self {
            id: row.try_get(0)?,
            body: row.try_get(1)?,
            standing: row.try_get(2)?,
            rest: Rest {
                ready_at: row.try_get(3)?,
                failures: row.try_get(4)?,
                begun: row.try_get(5)?,
                receipt: row.try_get(6)?,
                worker: row.try_get(7)?,
                expires: row.try_get(8)?,
                error: row.try_get(11)?,
                created: row.try_get(12)?,
                changed: row.try_get(13)?,
            },
            answers: row.try_get(9)?,
            taken: row.try_get(10)?,
            now: row.try_get::<_, i64>(14)?.cast_unsigned(),
        })
    }

    /// The job.
    ///
    /// # Errors
    /// [`ErrorKind::Store`] if it is damaged, or a newer release wrote it.
    pub(super) fn record(&self) -> Result<Record> {
        let answers = |text: &Option<String>| -> Result<Option<BTreeMap<String, Answer>>> {
            text.as_deref().map(|text| serde_json::from_str(text).map_err(|e| unreadable(self.id, e))).transpose()
        };
        let standing = StandingKind::ALL.into_iter().find(|kind| kind.as_str() == self.standing);
        let rest = &self.rest;
        Ok(Record {
            job: serde_json::from_str(&self.body).map_err(|e| unreadable(self.id, e))?,
            standing: standing.ok_or_else(|| unreadable(self.id, format!("standing '{}'", self.standing)))?,
            ready_at: rest.ready_at.cast_unsigned(),
            failures: rest.failures.cast_unsigned(),
            begun: rest.begun,
            receipt: rest.receipt.map(i64::cast_unsigned),
            worker: rest.worker.clone(),
            expires: rest.expires.cast_unsigned(),
            answers: answers(&self.answers)?,
            taken: answers(&self.taken)?,
            error: rest.error.clone(),
            created: rest.created.cast_unsigned(),
            changed: rest.changed.cast_unsigned(),
        })
    }
}

/// What stands in a row is not what this release writes.
pub(super) fn unreadable(id: i64, why: impl std::fmt::Display) -> Error {
    let message =
        "a job cannot be read: it is damaged, or a newer release wrote it; use the newer release, or delete its row";
    Error::new(ErrorKind::Store, message).with_context("job", format!("{id}: {why}"))
}
