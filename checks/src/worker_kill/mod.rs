//! Kills, stops and disconnects workers that share a queue, and their database, and checks that
//! nothing is lost and nothing is silently repeated.

mod chaos;
pub(crate) mod database;
mod people;
mod proxy;
mod verdict;
mod worker;

use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use agent::{
    PostgresJournal, PostgresQueue, RunRequest,
    core::BoxError,
    dispatch::{Dispatch, Job, JobStatusKind, QueueAdmin, Wanted},
};
use tempfile::TempDir;
use tokio::time::sleep;

use self::{
    chaos::{Chaos, Shares},
    database::Database,
    proxy::Proxy,
    worker::Workers,
};
use crate::kill_test::world::ROOT;

/// Lets workers run trees of agents from one queue in PostgreSQL, and kills them (SIGKILL), stops
/// them for longer than their lease (SIGSTOP), cuts and stalls their connections, and stops the
/// database immediately, at random moments.
///
/// The check starts its own PostgreSQL server. Each run is the tree of `kill-test`: 30 steps on
/// three levels, with tools of every effect. Questions about calls in doubt are answered from the
/// count of external effects. At the end every job must be done, every conversation and every state
/// must equal that of an undisturbed run, every intended effect must have been executed, no effect
/// that is not repeatable twice, and one question must have been asked about every at-most-once
/// call in doubt. Exits with 1 otherwise.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Number of workers to kill.
    #[arg(long, default_value_t = 100)]
    kills: u64,
    /// Number of concurrent worker processes.
    #[arg(long, default_value_t = 3)]
    workers: usize,
    /// Number of queued and active runs at a time.
    #[arg(long, default_value_t = 8)]
    runs: usize,
    /// Seed of the faults and their times.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    shares: Shares,
    /// Internal: run as a worker with this directory for external effects.
    #[arg(long, hide = true, requires = "url")]
    child: Option<PathBuf>,
    /// Internal: URL of the database for the worker.
    #[arg(long, hide = true)]
    url: Option<String>,
}

/// Name of the subcommand, by which a process starts another.
pub(crate) const NAME: &str = "worker-kill";
/// Lease duration: time until the runs of a dead worker can be claimed.
const LEASE: Duration = Duration::from_secs(2);
/// Maximum time for the remaining runs to end after the last fault.
const PATIENCE: Duration = Duration::from_secs(300);

/// Acknowledged entries that workers reported: by session, sequence number and digest.
type Acknowledged = Arc<Mutex<HashMap<String, HashMap<u64, u64>>>>;

/// Returns true if nothing was lost, and nothing was silently repeated.
pub(crate) async fn run(args: &Args) -> Result<bool, BoxError> {
    if let (Some(dir), Some(url)) = (&args.child, &args.url) {
        return Ok(worker::live(dir, url).await.map(|()| true)?);
    }
    let Some(database) = Database::start()? else {
        println!("skipped: no postgres");
        return Ok(true);
    };
    disturb(args, database).await
}

async fn disturb(args: &Args, database: Database) -> Result<bool, BoxError> {
    let (dir, proxy) = (TempDir::new()?, Proxy::start(database.port()).await?);
    let (url, direct) = (database.url(proxy.port()), database.url(database.port()));
    let acknowledged = Acknowledged::default();
    let queue = PostgresQueue::builder(&direct).listen(false).connect().await?;
    let journal = PostgresJournal::builder(&direct).lease_ttl(LEASE).connect().await?;
    let answering = tokio::spawn(people::answer(queue.clone(), journal.clone(), dir.path().to_owned()));
    let mut workers = Workers::start(args.workers, dir.path(), &url, acknowledged.clone())?;
    let mut chaos = Chaos::new(args.seed, args.shares);
    let mut sent = 0;
    while chaos.done.kills < args.kills {
        sent = top_up(&queue, sent, args.runs).await;
        chaos.strike(&mut workers, &proxy, &database).await?;
    }
    let ended = drain(&queue).await;
    answering.abort();
    workers.end();
    eprintln!();
    let told = acknowledged.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let mut report = verdict::of(&journal, dir.path(), sent, &told).await?;
    report.kills = chaos.done.kills;
    report.faults.extend(ended);
    print!("{report}{}", chaos.done);
    report.faults.iter().take(20).for_each(|fault| eprintln!("{fault}"));
    if !report.faults.is_empty() {
        eprintln!("what was done outside is kept in {}", dir.keep().display());
    }
    Ok(report.faults.is_empty())
}

/// Enqueues runs until `open` are unfinished; returns the number enqueued so far. A failed attempt
/// is repeated the next time.
async fn top_up(queue: &PostgresQueue, mut sent: u64, open: usize) -> u64 {
    let Ok(left) = unfinished(queue).await else { return sent };
    for _ in left.len()..open {
        let name = name(sent);
        let request = RunRequest::user("Go.").session(name.as_str()).run_id(name.as_str());
        let Ok(job) = Job::new(ROOT, &request) else { break };
        let job = job.tenant(format!("t{}", sent % 3));
        if queue.dispatch(job).await.is_err() {
            break; // in either case the next attempt addresses the same run
        }
        sent += 1;
    }
    sent
}

/// Waits for all enqueued runs; returns those that did not end.
async fn drain(queue: &PostgresQueue) -> Vec<String> {
    let began = Instant::now();
    loop {
        let left = unfinished(queue).await;
        match left {
            Ok(left) if left.is_empty() => return Vec::new(),
            Ok(left) if began.elapsed() > PATIENCE => return left,
            Err(e) if began.elapsed() > PATIENCE => return vec![e.to_string()],
            _ => sleep(Duration::from_millis(200)).await,
        }
    }
}

async fn unfinished(queue: &PostgresQueue) -> Result<Vec<String>, agent::Error> {
    let jobs = queue.jobs(&Wanted::default().most(usize::MAX)).await?;
    let open = jobs.into_iter().filter(|job| job.standing.kind() != JobStatusKind::Done);
    Ok(open.map(|job| format!("{} is {:?} ({:?})", job.job.at.run, job.standing, job.error)).collect())
}

fn name(run: u64) -> String {
    format!("run-{run}")
}
