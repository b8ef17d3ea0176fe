//! Servers in processes of their own: they are killed, and what they cost is theirs alone.

use std::{
    convert::Infallible,
    io,
    path::Path,
    process::Stdio,
    sync::LazyLock,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use agent::{
    Agent, Chunk, Message, Model, ModelRequest, ModelResponse, Result, SqliteJournal, async_trait, core::BoxError,
    core::ModelInfo,
};
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

/// Between two pieces of an answer.
const PAUSE: Duration = Duration::from_millis(20);

/// What a process serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum What {
    /// An agent that says as many pieces as it is asked for.
    Agent,
    /// The same pieces, as a bare stream of events.
    Bare,
}

/// Nanoseconds since 1970, for whoever wants to know how long a piece was under way.
pub(super) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// Says as many pieces as it is asked for: `100` at a pace, `100!` as fast as can be, and nothing for `wait`.
struct Talker;

#[async_trait]
impl Model for Talker {
    fn info(&self) -> ModelInfo {
        ModelInfo::new("talker")
    }

    async fn call(&self, req: ModelRequest) -> Result<ModelResponse> {
        let asked = req.messages.last().map(Message::text).unwrap_or_default();
        if asked == "wait" {
            std::future::pending::<Infallible>().await;
        }
        let pieces: usize = asked.trim_end_matches('!').parse().unwrap_or(1);
        let (began, mut answer) = (Instant::now(), String::new());
        for n in 0..pieces {
            if asked.ends_with('!') {
                tokio::task::yield_now().await;
            } else {
                sleep_until(began + PAUSE * u32::try_from(n).unwrap_or(u32::MAX)).await;
            }
            let delta = format!("{} ", now());
            answer.push_str(&delta);
            req.sink.send(Chunk::Text { index: 0, delta });
        }
        Ok(ModelResponse::new(answer.as_str()))
    }
}

/// Serves until the process ends, and says at first where.
pub(super) async fn serve(what: What, store: Option<&Path>, port: u16) -> std::result::Result<(), BoxError> {
    raise_limit_of_files()?;
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    println!("{}", listener.local_addr()?);
    match what {
        What::Bare => axum::serve(listener, Router::new().route("/{pieces}", get(bare))).await?,
        What::Agent => {
            let server = Server::builder()
                .agent(Agent::builder("talker", Talker).build()?)
                .max_streams(20_000)
                .max_connections(20_000);
            let server = match store {
                Some(store) => server.store(SqliteJournal::open(store)?),
                None => server,
            };
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

/// A server that runs, until this is dropped.
pub(super) struct Served {
    process: Child,
    pub(super) address: String,
}

impl Served {
    /// A server, on this port if it is not 0.
    pub(super) async fn begin(what: What, store: Option<&Path>, port: u16) -> io::Result<Self> {
        static PROGRAM: LazyLock<io::Result<std::path::PathBuf>> = LazyLock::new(std::env::current_exe);
        let program = PROGRAM.as_ref().map_err(|error| io::Error::other(error.to_string()))?;
        let mut command = Command::new(program);
        command.args([super::NAME, "--port", &port.to_string(), "--serve"]);
        command.arg(if what == What::Bare { "bare" } else { "agent" });
        if let Some(store) = store {
            command.arg("--store").arg(store);
        }
        let mut process = command.stdout(Stdio::piped()).kill_on_drop(true).spawn()?;
        let said = process.stdout.take().ok_or_else(|| io::Error::other("it has no output"))?;
        let address = BufReader::new(said).lines().next_line().await?;
        Ok(Self { process, address: address.ok_or_else(|| io::Error::other("the server did not begin"))? })
    }

    pub(super) async fn kill(mut self) -> io::Result<()> {
        self.process.kill().await
    }

    /// Bytes of memory that it has, and seconds of a processor that it used.
    pub(super) fn cost(&self) -> io::Result<(u64, f64)> {
        let id = self.process.id().ok_or_else(|| io::Error::other("it ended"))?;
        let status = std::fs::read_to_string(format!("/proc/{id}/status"))?;
        let kilobytes =
            status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.split_whitespace().next()?.parse::<u64>().ok());
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat"))?;
        let fields: Vec<_> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<f64>().ok()).unwrap_or_default();
        // The kernel counts in hundredths of a second, whatever its own clock does.
        Ok((kilobytes.unwrap_or_default() << 10, (ticks(11) + ticks(12)) / 100.0))
    }
}

/// As many open files as the system allows this process.
pub(super) fn raise_limit_of_files() -> io::Result<()> {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE)?;
    Ok(setrlimit(Resource::RLIMIT_NOFILE, most, most)?)
}
