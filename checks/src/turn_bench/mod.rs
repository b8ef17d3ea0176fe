//! Cost of a turn as the stored session grows: CPU time and bytes of its entries, in a process that
//! has the session cached and in one that loads it.
//!
//! Prints a table and exits with 1 if the cost of a turn grows with the session. Time is only
//! judged in release builds.

mod session;

use agent::core::Result;

use self::session::{Cost, Session};

/// Measures turns 10, 1,000 and 10,000 of one session: each must cost the same, in bytes and in CPU
/// time.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Numbers of the measured turns.
    #[arg(long, value_delimiter = ',', default_values_t = [10, 1_000, 10_000])]
    turns: Vec<usize>,
    /// PostgreSQL database for sessions, in addition to a SQLite file.
    #[arg(long, value_name = "URL")]
    postgres: Option<String>,
    /// Directory for the file. Default: the current one.
    #[arg(long, default_value = ".")]
    dir: std::path::PathBuf,
}

/// Number of turns measured at each position; the median counts.
const SAMPLES: usize = 9;

/// Returns true if the cost of a turn does not grow with the session.
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

/// Prints a row; returns true if it is within the limits.
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
