//! A server under load, and under clients and a kernel that mean it no good: what its viewers see, and what it costs.
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

/// The name of the subcommand, by which the program starts its own servers.
pub(crate) const NAME: &str = "server-check";

/// Checks and measures a server, at loopback addresses alone.
///
/// Viewers whose connections are dropped at random places, viewers that stall, a server that is killed while runs are under way, many runs
/// at once beside a bare stream of events, many idle viewers, and connections that mean no good. Prints figures. Exits with 1 if a viewer missed an event, had one
/// twice or out of order, if a run was lost, an answer refused or something done twice, if a request got another status than it should, or if something cost more than it
/// may; a part of which the number is 0 is left out.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Connections that are dropped.
    #[arg(long, default_value_t = 1_000)]
    drops: usize,
    /// Pieces of a run whose viewers stall: a minute of 5,000 a second.
    #[arg(long, default_value_t = 300_000)]
    stalled: usize,
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
    /// Connections that mean no good.
    #[arg(long, default_value_t = 10_000)]
    connections: usize,
    /// For the program itself: be a server.
    #[arg(long, hide = true)]
    serve: Option<child::What>,
    /// For the program itself: where a server keeps its sessions.
    #[arg(long, hide = true)]
    dir: Option<std::path::PathBuf>,
    /// For the program itself: the port of a server.
    #[arg(long, hide = true, default_value_t = 0)]
    port: u16,
}

/// True if all that was asked for holds.
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
