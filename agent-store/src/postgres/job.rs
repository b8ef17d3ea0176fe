//! Jobs of the writer thread.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use agent_core::{Error, ErrorKind, Result};
use futures::future::BoxFuture;
use tokio_postgres::Error as PgError;

use super::{connect::Db, project::At, query::Parameter};
use crate::{
    batch::Batch,
    encode::Summary,
    error::{earlier_failed, lost},
    project::{short, space},
};

/// Job that shares a transaction with others. Its statement returns one number, or none if the job
/// was rejected.
pub(super) enum Job {
    Append(Append),
    Open { session: Arc<str>, agent: Arc<str>, deliver: Deliver<i64> },
    Release { session: Arc<str>, epoch: i64 },
}

/// Callback that receives the answer.
pub(super) type Deliver<T> = Box<dyn FnOnce(Result<T>) + Send>;

/// Number that a job's statement returned.
pub(super) type Given = Result<Option<i64>, PgError>;

/// Entries of one writer.
pub(super) struct Append {
    pub(super) epoch: i64,
    pub(super) session: Arc<str>,
    pub(super) agent: Arc<str>,
    pub(super) batch: Batch,
    pub(super) waiting: Waiting,
}

/// Guard that counts bytes as waiting until it is dropped.
pub(super) struct Waiting {
    all: Arc<AtomicUsize>,
    bytes: usize,
}

impl Waiting {
    pub(super) fn new(all: Arc<AtomicUsize>, bytes: usize) -> Self {
        all.fetch_add(bytes, Ordering::AcqRel);
        Self { all, bytes }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.all.fetch_sub(self.bytes, Ordering::AcqRel);
    }
}

impl Job {
    pub(super) fn session(&self) -> &Arc<str> {
        match self {
            Self::Append(append) => &append.session,
            Self::Open { session, .. } | Self::Release { session, .. } => session,
        }
    }

    /// True if the job contains the end of a run, which must be on disk before it is acknowledged,
    /// even in an asynchronous journal.
    pub(super) fn ends_run(&self) -> bool {
        matches!(self, Self::Append(append) if append.batch.ends_run)
    }

    /// Returns the lease that the job releases.
    pub(super) fn released(&self) -> Option<i64> {
        match self {
            Self::Release { epoch, .. } => Some(*epoch),
            _ => None,
        }
    }

    /// Returns the lease that the job took, if its result is one.
    pub(super) fn lease(&self, given: Option<i64>) -> Option<i64> {
        given.filter(|_| matches!(self, Self::Open { .. }))
    }

    /// True if the job can only fail.
    pub(super) fn is_behind_a_failure(&self) -> bool {
        matches!(self, Self::Append(append) if append.batch.receipt.place.is_behind_a_failure())
    }

    /// Returns the job's requests, each sent when first polled. `sync` decides whether the commit
    /// waits for the disk.
    pub(super) fn requests<'a>(
        &'a self,
        db: &'a Db,
        holder: &'a str,
        ttl: f64,
        sync: &'static str,
    ) -> Vec<BoxFuture<'a, Given>> {
        let statements = &db.statements;
        match self {
            Self::Append(append) => append.requests(db, sync),
            Self::Open { session, agent, .. } => vec![Box::pin(async move {
                let (session, agent) = (session.as_bytes(), agent.as_bytes());
                statements.open.number(&db.client, &[&session, &agent, &holder, &ttl]).await
            })],
            Self::Release { epoch, .. } => {
                vec![Box::pin(async move { statements.release.number(&db.client, &[epoch]).await })]
            }
        }
    }

    /// Sends the answer.
    pub(super) fn finish(self, given: Result<Option<i64>>) {
        match self {
            Self::Append(Append { session, agent, batch, waiting, .. }) => {
                drop(waiting);
                let first = given.and_then(|first| first.ok_or_else(|| lost(&session, &agent)));
                batch.receipt.answer(first.map(i64::cast_unsigned));
            }
            Self::Open { session, agent, deliver } => {
                deliver(given.and_then(|epoch| epoch.ok_or_else(|| held(&session, &agent))));
            }
            Self::Release { .. } => {
                if let Err(e) = given {
                    tracing::warn!(error = %e, "a lease could not be released; it will expire");
                }
            }
        }
    }

    /// Answers that the whole transaction failed.
    pub(super) fn fail(self, e: &Error) {
        let again = Error::new(e.kind(), e.message().to_owned()).with_retry(e.retry());
        self.finish(Err(match e.context("postgres") {
            Some(said) => again.with_context("postgres", said),
            None => again,
        }));
    }

    /// Answers that an earlier append failed.
    pub(super) fn refuse(self) {
        self.finish(Err(earlier_failed()));
    }
}

impl Append {
    fn requests<'a>(&'a self, db: &'a Db, sync: &'static str) -> Vec<BoxFuture<'a, Given>> {
        let mut requests: Vec<BoxFuture<'a, Given>> = Vec::with_capacity(2);
        if self.batch.entries.iter().any(|entry| entry.parts > 0) {
            requests.push(Box::pin(async move {
                let blobs = || self.batch.entries.iter().flat_map(|entry| &entry.blobs);
                let hashes: Vec<_> = blobs().map(|blob| &blob.hash[..]).collect();
                let texts: Vec<_> = blobs().map(|blob| &*blob.text).collect();
                db.statements.keep.rows(&db.client, &[&self.epoch, &hashes, &texts]).await.map(|_| None)
            }));
        }
        requests.push(Box::pin(async move {
            let entries = &self.batch.entries;
            let runs: Vec<_> = entries.iter().map(|entry| entry.run.as_bytes()).collect();
            let times: Vec<_> = entries.iter().map(|entry| entry.time.cast_signed()).collect();
            let versions: Vec<_> = entries.iter().map(|entry| i32::from(entry.version)).collect();
            let bodies: Vec<_> = entries.iter().map(|entry| &*entry.body).collect();
            let parts: Vec<_> = entries.iter().map(|entry| small(entry.parts)).collect();
            let blobs = || (1_i64..).zip(entries).flat_map(|(n, e)| e.blobs.iter().map(move |blob| (n, blob)));
            let numbers: Vec<_> = blobs().map(|(n, _)| n).collect();
            let places: Vec<_> = blobs().map(|(_, blob)| small(blob.at)).collect();
            let hashes: Vec<_> = blobs().map(|(_, blob)| &blob.hash[..]).collect();
            let (session, count) = (self.session.as_bytes(), entries.len() as i64);
            let Summary { first, newest, runs: began, agents, title, anchor, active } = Summary::of(entries);
            let (first, newest, began) = (first.cast_signed(), newest.cast_signed(), began.cast_signed());
            let agents: Vec<_> = agents.into_iter().map(str::as_bytes).collect();
            let title = title.map(str::as_bytes);
            let (active, space) = (active.cast_signed(), short(space(&self.session)).to_vec());
            let parameters: [Parameter<'_>; 20] = [
                &self.epoch,
                &session,
                &count,
                &runs,
                &times,
                &versions,
                &bodies,
                &parts,
                &numbers,
                &places,
                &hashes,
                &first,
                &newest,
                &began,
                &title,
                &agents,
                &anchor,
                &sync,
                &active,
                &space,
            ];
            db.statements.append.number(&db.client, &parameters).await
        }));
        let changes = self.batch.entries.iter().enumerate().flat_map(|(n, entry)| {
            let later = (self.batch.entries.len() - 1 - n) as i64;
            entry.changes.iter().map(move |change| (entry, later, change))
        });
        // After the append, which creates the session and advances its head.
        for (entry, later, change) in changes {
            let at = At { epoch: Some(self.epoch), session: &self.session, run: &entry.run, time: entry.time, later };
            requests.push(Box::pin(async move {
                db.statements.project.apply(&db.client, &at, change).await.map(|()| None)
            }));
        }
        requests
    }
}

/// Converts an offset within an entry, which is smaller than a gigabyte.
fn small(size: usize) -> i32 {
    i32::try_from(size).unwrap_or(i32::MAX)
}

/// Another writer has the lease, or the session is being deleted.
fn held(session: &str, agent: &str) -> Error {
    let message = format!(
        "agent '{agent}' already runs in session '{session}', or the session is being deleted; if its process has died, the session is free when its lease ends"
    );
    Error::new(ErrorKind::Busy, message)
}
