//! Server under load, hostile clients and kills: completeness for its viewers, and cost.
//!
//! `cargo run --release -p agent-checks -- server-check`

mod abuse;
mod child;
mod clerk;
mod client;
mod dropped;
mod idle;
mod kills;
mod load;
mod stalled;
mod talker;

use agent::core::BoxError;

/// Name of the subcommand, by which the program starts its own servers.
pub(crate) const NAME: &str = "server-check";

/// Checks and measures a server, on loopback addresses only.
///
/// Covers viewers whose connections are dropped at random positions, viewers that stall, a server
/// that is killed during active runs, many concurrent runs relative to a bare stream of events,
/// many idle viewers, and hostile connections. Prints metrics. Exits with 1 if a viewer missed an
/// event, had one twice or out of order, if a run was lost, an answer rejected or an effect
/// repeated, if a request got an unexpected status, or if a cost limit was exceeded. A part whose
/// number is 0 is skipped.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Number of dropped connections.
    #[arg(long, default_value_t = 1_000)]
    drops: usize,
    /// Number of pieces of a run whose viewers stall: a minute at 5,000 per second.
    #[arg(long, default_value_t = 300_000)]
    stalled: usize,
    /// Number of kills of a server.
    #[arg(long, default_value_t = 300)]
    kills: usize,
    /// Number of active runs during the kills.
    #[arg(long, default_value_t = 50)]
    killed_runs: usize,
    /// Number of concurrent streaming runs.
    #[arg(long, default_value_t = 1_000)]
    runs: usize,
    /// Number of pieces per streaming run.
    #[arg(long, default_value_t = 100)]
    pieces: usize,
    /// Number of idle viewers.
    #[arg(long, default_value_t = 10_000)]
    viewers: usize,
    /// Number of hostile connections.
    #[arg(long, default_value_t = 10_000)]
    connections: usize,
    /// Internal: run as a server.
    #[arg(long, hide = true)]
    serve: Option<child::What>,
    /// Internal: session directory of a server.
    #[arg(long, hide = true)]
    dir: Option<std::path::PathBuf>,
    /// Internal: port of a server.
    #[arg(long, hide = true, default_value_t = 0)]
    port: u16,
}

/// Returns true if all requested checks pass.
pub(crate) async fn run(args: &Args) -> Result<bool, BoxError> {
    if let Some(what) = args.serve {
        child::serve(what, args.dir.as_deref(), args.port).await?;
        return Ok(true);
    }
    child::raise_limit_of_files()?;
    let mut holds = args.drops == 0 || dropped::check(args.drops).await?;
    holds &= args.stalled == 0 || stalled::measure(args.stalled).await?;
    holds &= args.kills == 0 || kills::check(args.kills, args.killed_runs).await?;
    holds &= args.runs == 0 || load::measure(args.runs, args.pieces).await?;
    holds &= args.viewers == 0 || idle::measure(args.viewers).await?;
    holds &= args.connections == 0 || abuse::check(args.connections).await?;
    println!("{}", if holds { "everything holds" } else { "SOMETHING DOES NOT HOLD" });
    Ok(holds)
}
