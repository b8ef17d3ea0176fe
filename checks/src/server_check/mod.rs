//! A server under load, and under clients and a kernel that mean it no good: what its viewers see, and what it costs.
//!
//! `cargo run --release -p agent-checks -- server-check`

mod child;
mod client;
mod dropped;
mod idle;
mod kills;
mod load;
mod stalled;

use agent::core::BoxError;

/// The name of the subcommand, by which the program starts its own servers.
pub(crate) const NAME: &str = "server-check";

/// Checks and measures a server, at loopback addresses alone.
///
/// Viewers whose connections are dropped at random places, a viewer that stalls, a server that is killed while runs are under way, many runs
/// at once beside a bare stream of events, and many idle viewers. Prints figures. Exits with 1 if a viewer missed an event, had one twice or
/// out of order, or if a run was lost; no time and no size fails it.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Connections that are dropped.
    #[arg(long, default_value_t = 1_000)]
    drops: usize,
    /// Times that a server is killed.
    #[arg(long, default_value_t = 300)]
    kills: usize,
    /// Runs under way while it is.
    #[arg(long, default_value_t = 50)]
    killed_runs: usize,
    /// Runs that stream at once.
    #[arg(long, default_value_t = 1_000)]
    runs: usize,
    /// Pieces that each of them streams.
    #[arg(long, default_value_t = 100)]
    pieces: usize,
    /// Viewers that only wait.
    #[arg(long, default_value_t = 10_000)]
    viewers: usize,
    /// For the program itself: be a server.
    #[arg(long, hide = true)]
    serve: Option<child::What>,
    /// For the program itself: where a server keeps its sessions.
    #[arg(long, hide = true)]
    store: Option<std::path::PathBuf>,
    /// For the program itself: the port of a server.
    #[arg(long, hide = true, default_value_t = 0)]
    port: u16,
}

/// True if no viewer missed anything, and no run was lost.
pub(crate) async fn run(args: &Args) -> Result<bool, BoxError> {
    if let Some(what) = args.serve {
        child::serve(what, args.store.as_deref(), args.port).await?;
        return Ok(true);
    }
    child::raise_limit_of_files()?;
    let mut holds = dropped::check(args.drops).await?;
    stalled::measure(args.pieces * 100).await?;
    holds &= kills::check(args.kills, args.killed_runs).await?;
    holds &= load::measure(args.runs, args.pieces).await?;
    idle::measure(args.viewers).await?;
    println!("{}", if holds { "everything holds" } else { "SOMETHING DOES NOT HOLD" });
    Ok(holds)
}
