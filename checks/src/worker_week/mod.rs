//! Simulated week of waiting sessions: their cost to the workers, and the behaviour of runs while
//! all workers are replaced.

mod fleet;
mod rolling;
mod waiting;
mod worker;

use std::{path::PathBuf, time::Duration};

use agent::{PostgresQueue, core::BoxError};
use tokio::time::sleep;

use self::fleet::Fleet;
use crate::worker_kill::database::Database;

/// Creates waiting sessions in the check's own PostgreSQL server, answers some of them one after
/// the other, and measures the memory of the workers and the time from an answer to the next step;
/// then replaces all workers one by one, several times, during runs of ten steps.
///
/// Runs create twice as many sessions as there are answers, and the rest are copies of one of them.
/// Exits with 1 if the memory of a worker grows by more than a fifth, if the 99th percentile of the
/// delay after an answer is more than 50 ms above that with few waiting sessions, if a run fails or
/// repeats an effect while workers are replaced, or if the 99th percentile of the delay of a step
/// then reaches 3 seconds.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Number of waiting sessions.
    #[arg(long, default_value_t = 100_000)]
    sessions: u64,
    /// Number of measured answers.
    #[arg(long, default_value_t = 500)]
    answers: u64,
    /// Number of worker processes.
    #[arg(long, default_value_t = 2)]
    workers: usize,
    /// Number of active runs while workers are replaced.
    #[arg(long, default_value_t = 200)]
    runs: u64,
    /// Number of times that all workers are replaced.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Internal: run as a worker with this directory for external effects.
    #[arg(long, hide = true, requires = "url")]
    child: Option<PathBuf>,
    /// Internal: URL of the database for the worker.
    #[arg(long, hide = true)]
    url: Option<String>,
}

/// Name of the subcommand, by which a process starts another.
pub(crate) const NAME: &str = "worker-week";

/// Returns true if the claims hold.
pub(crate) async fn run(args: &Args) -> Result<bool, BoxError> {
    if let (Some(dir), Some(url)) = (&args.child, &args.url) {
        return Ok(worker::live(dir, url).await.map(|()| true)?);
    }
    let Some(database) = Database::start()? else {
        println!("skipped: no postgres");
        return Ok(true);
    };
    let dir = tempfile::TempDir::new()?;
    let queue = PostgresQueue::builder(&database.url(database.port())).listen(false).connect().await?;
    let mut fleet = Fleet::start(args.workers, dir.path(), &database)?;
    let waits = waiting::measure(&queue, &mut fleet, &database, args.sessions, args.answers).await?;
    let rolls = rolling::measure(&queue, &mut fleet, &database, args.runs, args.rounds).await?;
    Ok(waits && rolls)
}

/// Counts the jobs with this status.
fn count(database: &Database, standing: &str) -> Result<u64, BoxError> {
    let (port, sql) =
        (database.port().to_string(), format!("SELECT count(*) FROM agent_queue.job WHERE standing = '{standing}'"));
    let said = database.output("psql", &["-h", "127.0.0.1", "-p", &port, "-U", "tests", "-Atc", &sql, "postgres"])?;
    Ok(said.trim().parse()?)
}

/// Waits until no job is queued or running, without a timeout.
async fn settles(database: &Database) -> Result<(), BoxError> {
    while count(database, "queued")? + count(database, "running")? > 0 {
        sleep(Duration::from_millis(200)).await;
    }
    Ok(())
}

/// Returns the quantile of sorted values.
fn quantile(sorted: &[u64], part: f64) -> u64 {
    let at = ((sorted.len() as f64 * part).ceil() as usize).clamp(1, sorted.len().max(1));
    sorted.get(at - 1).copied().unwrap_or_default()
}
