//! What a turn of a stored session costs as the session grows: the processor's time and the bytes of its entries, in a process that
//! knows the session and in one that sees it for the first time.
//!
//! Prints a table and ends with 1 if a turn costs more because others were before it. Time is only judged in release builds.

mod session;

use agent::core::Result;

use self::session::{Cost, Session};

/// Measures turns 10, 1,000 and 10,000 of one session: that each costs the same, in bytes and in the processor's time.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The turns that are measured.
    #[arg(long, value_delimiter = ',', default_values_t = [10, 1_000, 10_000])]
    turns: Vec<usize>,
    /// A database of PostgreSQL in which sessions may be made, beside a file of SQLite.
    #[arg(long, value_name = "URL")]
    postgres: Option<String>,
    /// The directory for the file. Default: the current one.
    #[arg(long, default_value = ".")]
    dir: std::path::PathBuf,
}

/// How many turns are measured at each place; the median counts.
const SAMPLES: usize = 9;

/// True if no turn costs more because others were before it.
pub(crate) async fn run(args: &Args) -> Result<bool> {
    let dir = tempfile::tempdir_in(&args.dir)
        .map_err(|e| agent::Error::config("the directory cannot be written to: name another").with_source(e))?;
    let mut stores = vec![("SQLite", format!("sqlite:{}", dir.path().join("turns.db").display()))];
    stores.extend(args.postgres.iter().map(|url| ("PostgreSQL", url.clone())));
    let mut holds = true;
    for (name, address) in stores {
        let mut session = Session::open(&address).await?;
        let mut first = None;
        for turn in &args.turns {
            session.grow(turn.saturating_sub(SAMPLES)).await?;
            let warm = session.warm(SAMPLES).await?;
            let cold = session.cold().await?;
            let first = first.get_or_insert(warm);
            holds &= judge(name, *turn, warm, cold, *first);
        }
        session.delete().await?;
    }
    Ok(holds)
}

/// Prints a row, and says whether it may be so.
fn judge(store: &str, turn: usize, warm: Cost, cold: Cost, first: Cost) -> bool {
    let ratio = |one: f64, other: f64| one / other.max(1.0);
    let (time, bytes) = (ratio(warm.cpu, first.cpu), ratio(warm.bytes as f64, first.bytes as f64));
    let holds = (bytes - 1.0).abs() <= 0.05 && (cfg!(debug_assertions) || time <= 1.5);
    println!(
        "{store:<10}  turn {turn:>6}  warm {:>8.0} µs ({time:.2})  {:>6} bytes ({bytes:.3})  cold {:>9.0} µs{}",
        warm.cpu,
        warm.bytes,
        cold.cpu,
        if holds { "" } else { "  MISSED" },
    );
    holds
}
