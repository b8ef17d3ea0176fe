//! Row of a job.

use std::{collections::BTreeMap, fmt::Display};

use agent_core::{Answer, Error, ErrorKind, Result, RunRequest};
use agent_dispatch::{Job, JobStatusKind};
use tokio_postgres::Row;

use crate::queue::record::Record;

/// Columns of a [`Stored`].
pub(super) const COLUMNS: &str = "
SELECT id, (extract(epoch FROM clock_timestamp()) * 1000)::int8, agent, session, run, tenant, priority, body, answers, taken, standing,
    ready_at, failures, begun, receipt, worker, expires, error, created, changed, stands
FROM {schema}.job ";

/// A job's row.
pub(super) struct Stored {
    pub(super) id: i64,
    /// The server's clock when the row was read.
    pub(super) now: u64,
    record: Record,
    /// Reason why the record is incomplete.
    unreadable: Option<String>,
}

/// Decoded texts: the job and its answers.
type Read = (Job, Option<BTreeMap<String, Answer>>, Option<BTreeMap<String, Answer>>);

impl Stored {
    pub(super) fn read(row: &Row) -> Result<Self, tokio_postgres::Error> {
        let (body, answers, taken) = (row.try_get(7)?, row.try_get(8)?, row.try_get(9)?);
        let kind: &str = row.try_get(10)?;
        let standing = JobStatusKind::ALL.into_iter().find(|standing| standing.as_str() == kind);
        let read = match standing {
            Some(_) => read(body, answers, taken).map_err(|e| e.to_string()),
            None => Err(format!("standing '{kind}'")),
        };
        let (unreadable, (job, answers, taken)) = match read {
            Ok(read) => (None, read),
            Err(why) => (Some(why), (nameable(row)?, None, None)),
        };
        let record = Record {
            job,
            standing: standing.unwrap_or(JobStatusKind::Dead),
            ready_at: row.try_get::<_, i64>(11)?.cast_unsigned(),
            failures: row.try_get::<_, i32>(12)?.cast_unsigned(),
            begun: row.try_get(13)?,
            stands: row.try_get(20)?,
            receipt: row.try_get::<_, Option<i64>>(14)?.map(i64::cast_unsigned),
            worker: row.try_get(15)?,
            expires: row.try_get::<_, i64>(16)?.cast_unsigned(),
            answers,
            taken,
            error: row.try_get(17)?,
            created: row.try_get::<_, i64>(18)?.cast_unsigned(),
            changed: row.try_get::<_, i64>(19)?.cast_unsigned(),
        };
        Ok(Self { id: row.try_get(0)?, now: row.try_get::<_, i64>(1)?.cast_unsigned(), record, unreadable })
    }

    /// Returns the record, for a change.
    ///
    /// # Errors
    /// [`ErrorKind::Store`] if it is damaged, or a newer release wrote it.
    pub(super) fn record(self) -> Result<Record> {
        match self.unreadable {
            Some(why) => Err(unreadable(format!("{}: {why}", self.id))),
            None => Ok(self.record),
        }
    }

    /// Returns the record, for display; if it cannot be decoded, without its content.
    pub(super) fn shown(&self) -> &Record {
        &self.record
    }
}

fn read(body: &str, answers: Option<&str>, taken: Option<&str>) -> serde_json::Result<Read> {
    let optional = |text: Option<&str>| text.map(serde_json::from_str).transpose();
    Ok((serde_json::from_str(body)?, optional(answers)?, optional(taken)?))
}

/// Returns a job with the names of this row and no content.
fn nameable(row: &Row) -> Result<Job, tokio_postgres::Error> {
    let name = |at| row.try_get::<_, &[u8]>(at).map(|name| String::from_utf8_lossy(name).into_owned());
    let request = RunRequest::new(Vec::new()).session(name(3)?).run_id(name(4)?);
    let job = Job::new(name(2)?, &request).expect("a request without resources is serializable");
    Ok(job.tenant(name(5)?).priority(row.try_get(6)?))
}

/// The row does not have the format of this release.
pub(super) fn unreadable(why: impl Display) -> Error {
    let message = "cannot decode a row of the queue: it is damaged, or a newer release wrote it; use the newer release, or remove the row";
    Error::new(ErrorKind::Store, message).with_context("queue", why.to_string())
}
