//! Servers in child processes: they are killed, and their cost is measured separately.

use std::{convert::Infallible, io, path::Path, process::Stdio, time::Duration};

use agent::{SqliteJournal, core::BoxError};
use agent_server::Server;
use axum::{
    Router,
    extract::Path as Part,
    response::sse::{Event, Sse},
    routing::get,
};
use futures::stream;
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    net::TcpListener,
    process::{Child, Command},
    time::{Instant, sleep_until},
};

use super::{
    clerk,
    talker::{self, now},
};
use crate::kill_test::counter::Counter;

/// Pause between two pieces of a response.
pub(super) const PAUSE: Duration = Duration::from_millis(20);

/// Maximum of connections and streams of a server.
const MOST: usize = 20_000;
/// Lease duration: time until another server can take over the runs of a dead one.
const LEASE: Duration = Duration::from_secs(1);

/// Workload of a server process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum What {
    /// The agents.
    Agent,
    /// The same pieces, as a bare stream of events.
    Bare,
}

/// Serves until the process ends, and prints its address first.
pub(super) async fn serve(what: What, dir: Option<&Path>, port: u16) -> std::result::Result<(), BoxError> {
    raise_limit_of_files()?;
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    println!("{}", listener.local_addr()?);
    match what {
        What::Bare => axum::serve(listener, Router::new().route("/{pieces}", get(bare))).await?,
        What::Agent => {
            let mut server = Server::builder().agent(talker::agent()?).max_streams(MOST).max_connections(MOST);
            if let Some(dir) = dir {
                let journal = SqliteJournal::builder(dir.join("runs.db")).lease_ttl(LEASE).open()?;
                server = server.agent(clerk::agent(Counter::open(dir)?)?).store(journal);
            }
            server.build()?.serve(listener, std::future::pending(), Duration::ZERO).await?;
        }
    }
    Ok(())
}

async fn bare(Part(pieces): Part<usize>) -> Sse<impl futures::Stream<Item = std::result::Result<Event, Infallible>>> {
    let began = Instant::now();
    Sse::new(stream::unfold(0, move |n| async move {
        if n == pieces {
            return None;
        }
        sleep_until(began + PAUSE * u32::try_from(n).unwrap_or(u32::MAX)).await;
        Some((Ok(Event::default().data(format!("{{\"delta\":\"{} \"}}", now()))), n + 1))
    }))
}

/// Running server, killed when dropped.
pub(super) struct Served {
    process: Child,
    pub(super) address: String,
}

impl Served {
    /// Starts a server, on this port if it is not 0.
    pub(super) async fn begin(what: What, dir: Option<&Path>, port: u16) -> io::Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args([super::NAME, "--port", &port.to_string(), "--serve"]);
        command.arg(if what == What::Bare { "bare" } else { "agent" });
        if let Some(dir) = dir {
            command.arg("--dir").arg(dir);
        }
        let mut process = command.stdout(Stdio::piped()).kill_on_drop(true).spawn()?;
        let said = process.stdout.take().ok_or_else(|| io::Error::other("it has no output"))?;
        let address = BufReader::new(said).lines().next_line().await?;
        Ok(Self { process, address: address.ok_or_else(|| io::Error::other("the server did not begin"))? })
    }

    pub(super) async fn kill(mut self) -> io::Result<()> {
        self.process.kill().await
    }

    /// Returns its memory in bytes, and its CPU time in seconds.
    pub(super) fn cost(&self) -> io::Result<(u64, f64)> {
        let id = self.process.id().ok_or_else(|| io::Error::other("it ended"))?;
        let status = std::fs::read_to_string(format!("/proc/{id}/status"))?;
        let kilobytes =
            status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.split_whitespace().next()?.parse::<u64>().ok());
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat"))?;
        let fields: Vec<_> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<f64>().ok()).unwrap_or_default();
        // The kernel counts in hundredths of a second, whatever its clock rate.
        Ok((kilobytes.unwrap_or_default() << 10, (ticks(11) + ticks(12)) / 100.0))
    }
}

/// Raises the limit of open files to the maximum allowed for this process.
pub(super) fn raise_limit_of_files() -> io::Result<()> {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE)?;
    Ok(setrlimit(Resource::RLIMIT_NOFILE, most, most)?)
}
