//! Writer thread: commits groups of jobs. The leases are renewed beside it.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use agent_core::{Error, Result, run::new_id};
use futures::{
    future::{BoxFuture, MaybeDone, maybe_done},
    poll,
};
use tokio::{runtime::Handle, sync::mpsc, time::timeout};

use super::{
    background::Background,
    connect::{Db, Location},
    connections::SETTINGS,
    delete::Delete,
    error::{is_conflict, is_consequence, is_fatal, lost_connection, store_error},
    job::{Given, Job, Waiting},
    renewals::{Asked, Renewer},
};
use crate::{
    Durability,
    error::cannot_keep_up,
    leases::Leases,
    stats::{Counters, Stats},
    writing::Writing,
};

/// Migrations from an empty schema to format 1, and so on.
const MIGRATIONS: &[&str] = &[
    include_str!("schema.sql"),
    include_str!("info.sql"),
    include_str!("anchor.sql"),
    include_str!("runs.sql"),
    include_str!("shared.sql"),
    include_str!("projection.sql"),
];

/// Requests to the thread.
pub(super) enum Work {
    /// Job of the next transaction.
    Write(Job),
    /// Deletion, beside the transactions, once all earlier requests are done.
    Delete(Delete),
}

/// Handle of the thread, and the size of its queue in bytes.
pub(super) struct JournalThread {
    thread: Background<Work>,
    waiting: Arc<AtomicUsize>,
    queue_bytes: usize,
    counters: Arc<Counters>,
    leases: Leases,
    renewals: mpsc::UnboundedSender<Asked>,
}

impl JournalThread {
    /// Starts the thread, which connects and migrates the tables.
    pub(super) async fn start(location: Location, writing: Writing) -> Result<Self> {
        let counters = Arc::<Counters>::default();
        let begun = std::time::Instant::now();
        let leases = Leases::new(writing.lease_ttl, move || begun.elapsed().as_millis().try_into().unwrap_or(u64::MAX));
        let (counted, held) = (counters.clone(), leases.clone());
        let begin = move || async move {
            location.migrate(MIGRATIONS).await?;
            let db = location.connect_writer().await?;
            Ok((location, db))
        };
        let (renewals, asked) = mpsc::unbounded_channel();
        let run = move |(location, db): (Location, Db), work| async move {
            let renewer = Renewer::new(location.clone(), asked, held.clone(), writing);
            let renewing = tokio::spawn(renewer.run());
            Writer { location, db: Some(db), work, counters: counted, holder: new_id(), leases: held, writing }
                .run()
                .await;
            renewing.abort(); // all leases are released
        };
        let thread = Background::start("agent-journal", begin, run).await?;
        let (waiting, queue_bytes) = (Arc::default(), writing.queue_bytes);
        Ok(Self { thread, waiting, queue_bytes, counters, leases, renewals })
    }

    pub(super) fn push(&self, job: Job) -> Result<()> {
        self.thread.push(Work::Write(job))
    }

    pub(super) fn delete(&self, delete: Delete) -> Result<()> {
        self.thread.push(Work::Delete(delete))
    }

    pub(super) fn queue(&self) -> Result<mpsc::UnboundedSender<Work>> {
        self.thread.queue()
    }

    /// Reserves space for entries of `bytes`, until they are written.
    pub(super) fn room(&self, bytes: usize) -> Result<Waiting> {
        let waiting = self.waiting.load(Ordering::Acquire);
        // Accept entries larger than the limit when nothing else waits: they could never be written
        // otherwise.
        if waiting > 0 && waiting + bytes > self.queue_bytes {
            return Err(cannot_keep_up(waiting));
        }
        Ok(Waiting::new(self.waiting.clone(), bytes))
    }

    /// Returns the leases that are renewed.
    pub(super) fn leases(&self) -> &Leases {
        &self.leases
    }

    /// Returns the channel that asks for an immediate renewal.
    pub(super) fn renewals(&self) -> &mpsc::UnboundedSender<Asked> {
        &self.renewals
    }

    pub(super) fn runtime(&self) -> &Handle {
        self.thread.runtime()
    }

    pub(super) fn stats(&self) -> Stats {
        self.counters.stats()
    }
}

struct Writer {
    location: Location,
    /// None after the connection failed, until it is reconnected.
    db: Option<Db>,
    work: mpsc::UnboundedReceiver<Work>,
    counters: Arc<Counters>,
    holder: String,
    /// Leases that are renewed. One whose acquisition was not acknowledged expires.
    leases: Leases,
    writing: Writing,
}

/// Failure of a transaction.
enum Failure {
    /// The job at this position was rejected.
    Job(usize, Error),
    /// Conflict with other transactions; can be retried.
    Conflict(Error),
    /// Everything failed.
    All(Error),
}

impl Writer {
    async fn run(mut self) {
        loop {
            let mut came = Vec::new();
            if self.work.recv_many(&mut came, self.writing.group).await == 0 {
                return;
            }
            let (mut group, mut deletes) = (Vec::with_capacity(came.len()), Vec::new());
            for work in came {
                match work {
                    Work::Write(job) => group.push(job),
                    Work::Delete(delete) => deletes.push(delete),
                }
            }
            if !group.is_empty() {
                self.commit(group).await;
            }
            for delete in deletes {
                drop(tokio::spawn(delete.run(self.location.clone())));
            }
        }
    }

    /// Returns the connection, reopened if it is closed.
    async fn db(&mut self) -> Result<&Db> {
        if self.db.as_ref().is_some_and(|db| db.client.is_closed()) {
            self.db = None;
        }
        let db = match self.db.take() {
            Some(db) => db,
            None => self.location.reconnect(Location::connect_writer).await?,
        };
        Ok(self.db.insert(db))
    }

    /// Runs a group of jobs in one transaction. A job that the database rejects is excluded, and
    /// the others are repeated without it.
    async fn commit(&mut self, mut group: Vec<Job>) {
        const TRIES: u32 = 5;
        group.iter().filter_map(Job::released).for_each(|epoch| self.leases.give_back(epoch));
        // All processes lock sessions in the same order; the order within a session is kept.
        group.sort_by(|a, b| a.session().cmp(b.session()));
        let mut tries = 0;
        loop {
            let (behind, rest): (Vec<_>, Vec<_>) = group.into_iter().partition(Job::is_behind_a_failure);
            behind.into_iter().for_each(Job::refuse);
            group = rest;
            if group.is_empty() {
                return;
            }
            let asked = self.leases.now();
            match self.attempt(&group).await {
                Ok(given) => {
                    self.counters.committed(group.len());
                    let taken = group.iter().zip(&given).filter_map(|(job, given)| job.lease(*given));
                    taken.for_each(|epoch| self.leases.take(epoch, asked));
                    return group.into_iter().zip(given).for_each(|(job, given)| job.finish(Ok(given)));
                }
                Err(Failure::Job(at, e)) => group.remove(at).finish(Err(e)),
                Err(Failure::Conflict(_)) if tries < TRIES => tries += 1,
                Err(Failure::Conflict(e) | Failure::All(e)) => return group.into_iter().for_each(|job| job.fail(&e)),
            }
        }
    }

    /// Makes one attempt: everything is pipelined, in one round trip.
    async fn attempt(&mut self, group: &[Job]) -> Result<Vec<Option<i64>>, Failure> {
        let (ttl, holder) = (self.writing.lease_ttl, self.holder.clone());
        let is_sync = self.writing.durability == Durability::Sync || group.iter().any(Job::ends_run);
        let db = self.db().await.map_err(Failure::All)?;
        let begin = format!("BEGIN ISOLATION LEVEL READ COMMITTED; {SETTINGS}");
        let mut requests: Vec<BoxFuture<'_, Given>> = Vec::with_capacity(group.len() + 2);
        let mut owners = Vec::with_capacity(group.len() + 2);
        for (at, job) in group.iter().enumerate() {
            let of_job = job.requests(db, &holder, ttl.as_secs_f64(), if is_sync { "on" } else { "off" });
            owners.extend(of_job.iter().map(|_| Some(at)));
            requests.extend(of_job);
        }
        // A single request, the most frequent case, is a transaction of its own.
        if requests.len() > 1 {
            let simple = |sql| Box::pin(async move { db.client.batch_execute(sql).await.map(|()| None) });
            requests.insert(0, simple(&begin));
            requests.push(simple("COMMIT"));
            owners.insert(0, None);
            owners.push(None);
        }

        // A lease that was not renewed for that long is lost anyway.
        let Ok(answers) = timeout(ttl, pipelined(requests)).await else {
            self.db = None;
            return Err(Failure::All(lost_connection()));
        };
        let cause = owners.iter().zip(&answers).find_map(|(owner, answer)| match answer {
            Err(e) if !is_consequence(e) => Some((*owner, e)),
            _ => None,
        });
        match cause {
            None => {
                // The one number among the answers of each job is its result.
                let mut given = vec![None; group.len()];
                for (owner, answer) in owners.into_iter().zip(answers) {
                    if let (Some(at), Ok(Some(number))) = (owner, answer) {
                        given[at] = Some(number);
                    }
                }
                Ok(given)
            }
            Some((_, e)) if is_conflict(e) => Err(Failure::Conflict(store_error(e))),
            Some((Some(at), e)) if !is_fatal(e) => Err(Failure::Job(at, store_error(e))),
            Some((_, e)) => {
                self.db = None;
                Err(Failure::All(store_error(e)))
            }
        }
    }
}

/// Sends all requests in order, and then waits for their answers.
async fn pipelined(requests: Vec<BoxFuture<'_, Given>>) -> Vec<Given> {
    let mut requests: Vec<Pin<Box<MaybeDone<_>>>> = requests.into_iter().map(maybe_done).map(Box::pin).collect();
    for request in &mut requests {
        let _ = poll!(request.as_mut());
    }
    let mut answers = Vec::with_capacity(requests.len());
    for mut request in requests {
        request.as_mut().await;
        answers.extend(request.as_mut().take_output());
    }
    answers
}
