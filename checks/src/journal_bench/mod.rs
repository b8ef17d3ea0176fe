//! What the SQLite journal costs: appends per second against rusqlite alone, and bytes per step of long runs.
//!
//! Prints a table and ends with 1 if a bar is missed. Speed is only judged in release builds. See `--help`.

mod appends;
mod steps;

use agent::core::Result;

/// Measures the SQLite journal: appends acknowledged when on disk, against rusqlite alone, and what a step of a run leaves.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Runs that append at the same time.
    #[arg(long, default_value_t = 64)]
    runs: usize,
    /// Appends of 2 KB of each run, in each round.
    #[arg(long, default_value_t = 200)]
    appends: usize,
    /// Rounds; the best of each side counts.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Steps of the long run, at least 1000 for the bar that looks at step 1000.
    #[arg(long, default_value_t = 1000)]
    steps: u32,
    /// The directory for the files. What is measured is its disk. Default: the current one.
    #[arg(long, default_value = ".")]
    dir: std::path::PathBuf,
}

/// A line of the table, and whether what it says must hold.
pub(crate) struct Row {
    what: String,
    found: String,
    bar: String,
    holds: bool,
}

impl Row {
    pub(crate) fn new(what: impl Into<String>, found: impl Into<String>, bar: impl Into<String>, holds: bool) -> Self {
        Self { what: what.into(), found: found.into(), bar: bar.into(), holds }
    }

    pub(crate) fn plain(what: impl Into<String>, found: impl Into<String>) -> Self {
        Self::new(what, found, "", true)
    }
}

/// True if no bar is missed.
pub(crate) async fn run(args: &Args) -> Result<bool> {
    let dir = tempfile::tempdir_in(&args.dir)
        .map_err(|e| agent::Error::config("the directory cannot be written to: name another").with_source(e))?;
    let mut rows = appends::measure(dir.path(), args.runs, args.appends, args.rounds).await?;
    rows.extend(steps::measure(dir.path(), args.steps).await?);
    for Row { what, found, bar, holds } in &rows {
        let judged = if *holds { "" } else { "  MISSED" };
        println!("{what:<44} {found:>14}  {bar}{judged}");
    }
    Ok(rows.iter().all(|row| row.holds))
}
