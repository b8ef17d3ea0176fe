//! A week of waiting sessions in a moment: what they cost the workers, and what becomes of runs when all workers are replaced.

mod fleet;
mod rolling;
mod waiting;
mod worker;

use std::{path::PathBuf, time::Duration};

use agent::{PostgresQueue, core::BoxError};
use tokio::time::sleep;

use self::fleet::Fleet;
use crate::worker_kill::database::Database;

/// Lets so many sessions in a PostgreSQL of the check's own wait for an answer, gives some of them theirs, one after the other, and measures the memory
/// of the workers and the time from an answer to the next step; then replaces all workers one by one, several times, while runs of ten steps are
/// under way.
///
/// Twice as many sessions as answers are made by runs, and the rest are copies of one of them. Exits with 1 if the memory of a worker grows by more than a
/// fifth, if one of a hundred answers is taken up more than 50 ms later than when few sessions wait, if a run fails or does something twice while workers are replaced, or if one of a hundred steps is then late by 3 seconds or more.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Sessions that wait.
    #[arg(long, default_value_t = 100_000)]
    sessions: u64,
    /// Answers that are measured.
    #[arg(long, default_value_t = 500)]
    answers: u64,
    /// Worker processes.
    #[arg(long, default_value_t = 2)]
    workers: usize,
    /// Runs that are under way while workers are replaced.
    #[arg(long, default_value_t = 200)]
    runs: u64,
    /// How often all workers are replaced.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Be one of the workers: the directory of what is done outside.
    #[arg(long, hide = true, requires = "url")]
    child: Option<PathBuf>,
    /// Where the worker finds the database.
    #[arg(long, hide = true)]
    url: Option<String>,
}

/// The name of the subcommand, by which a process starts another.
pub(crate) const NAME: &str = "worker-week";

/// True if what is claimed holds.
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

/// How many jobs stand so.
fn count(database: &Database, standing: &str) -> Result<u64, BoxError> {
    let (port, sql) =
        (database.port().to_string(), format!("SELECT count(*) FROM agent_queue.job WHERE standing = '{standing}'"));
    let said = database.output("psql", &["-h", "127.0.0.1", "-p", &port, "-U", "tests", "-Atc", &sql, "postgres"])?;
    Ok(said.trim().parse()?)
}

/// Waits until no job is queued or under way, as long as it takes.
async fn settles(database: &Database) -> Result<(), BoxError> {
    while count(database, "queued")? + count(database, "running")? > 0 {
        sleep(Duration::from_millis(200)).await;
    }
    Ok(())
}

/// The value below which this part of all lies.
fn quantile(sorted: &[u64], part: f64) -> u64 {
    let at = ((sorted.len() as f64 * part).ceil() as usize).clamp(1, sorted.len().max(1));
    sorted.get(at - 1).copied().unwrap_or_default()
}
