//! Cost of the SQLite journal: appends per second relative to plain rusqlite, and bytes per step of
//! long runs.
//!
//! Prints a table and exits with 1 if a bar is missed. Throughput is only judged in release builds.
//! See `--help`.

mod appends;
mod steps;

use agent::core::Result;

/// Measures the SQLite journal: appends acknowledged when on disk, relative to plain rusqlite, and
/// the bytes of each step.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Number of concurrently appending runs.
    #[arg(long, default_value_t = 64)]
    runs: usize,
    /// Number of 2 KB appends per run and round.
    #[arg(long, default_value_t = 200)]
    appends: usize,
    /// Number of rounds; the best of each side counts.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Number of steps of the long run, at least 1000 for the bar at step 1000.
    #[arg(long, default_value_t = 1000)]
    steps: u32,
    /// Directory for the files, whose disk is measured. Default: the current one.
    #[arg(long, default_value = ".")]
    dir: std::path::PathBuf,
}

/// Row of the table, and whether its bar must hold.
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

/// Returns true if no bar is missed.
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
