//! HTTP server for agents.

mod builder;

use std::{future::Future, io, time::Duration};

use axum::Router;
use tokio::net::TcpListener;

pub use self::builder::ServerBuilder;
use crate::{
    app::App,
    listen,
    router::{self, Guards},
    studio::Studio,
    teams::Teams,
};

/// HTTP server for agents, ready for requests. Cheap to clone.
///
/// ```no_run
/// use std::time::Duration;
///
/// use agent::{Agent, SqliteJournal, llm::model};
/// use agent_server::{Keys, Server};
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let agent = Agent::builder("support", model("openai:gpt-5").build()?).build()?;
/// let server = Server::builder()
///     .agent(agent)
///     .store(SqliteJournal::open("agents.db")?)
///     .keys(Keys::read("keys.json")?)
///     .build()?;
/// let listener = tokio::net::TcpListener::bind("127.0.0.1:8080").await?;
/// let stopped = async {
///     let _ = agent::shutdown_signal().await;
/// };
/// server.serve(listener, stopped, Duration::from_secs(20)).await?;
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct Server {
    app: App,
    teams: Teams,
    guards: Guards,
    connections: usize,
    recovers: bool,
    retention: Option<Duration>,
    studio: Option<Studio>,
}

impl Server {
    /// Returns a builder without agents.
    pub fn builder() -> ServerBuilder {
        ServerBuilder::default()
    }

    /// Returns the routes with all their layers, to be merged into another application. The
    /// application is then responsible for connections and for [recovery](Self::recover).
    pub fn router(&self) -> Router {
        let api = router::router(&self.app, &self.teams, &self.guards);
        match self.studio {
            Some(studio) => studio.beside(api, self.app.files().is_ok()),
            None => api,
        }
    }

    /// Returns the agents, their runs and sessions.
    pub fn app(&self) -> &App {
        &self.app
    }

    /// True if no authentication is configured, so that every client is accepted.
    pub fn is_open(&self) -> bool {
        self.guards.auth.is_open()
    }

    /// Continuously resumes runs of dead processes with this store: runs without an end in the
    /// journal, and queued runs, a few at a time. Ignores runs that wait for answers, failed, or
    /// were paused or cancelled by a user. Ends when the server [drains](Self::drain).
    pub async fn recover(&self) {
        self.teams.recover(&**self.app.journal()).await;
        self.app.keep_recovering().await;
    }

    /// Rejects new runs and brings active ones to a safe point `within` this time, from which
    /// another process resumes them.
    pub async fn drain(&self, within: Duration) -> agent::exec::Drained {
        let (drained, ()) = tokio::join!(self.app.end_runs(within), self.teams.drain(within));
        drained
    }

    /// Serves, and [recovers](Self::recover) unless the builder disabled it, until `shutdown`
    /// completes; then [drains](Self::drain) `within` this time, while clients receive the
    /// remaining events.
    ///
    /// # Errors
    /// The errors of the listener.
    pub async fn serve(
        &self,
        listener: TcpListener,
        shutdown: impl Future<Output = ()>,
        within: Duration,
    ) -> io::Result<()> {
        let recovering = {
            let server = self.clone();
            tokio::spawn(async move {
                let recovering = async {
                    if server.recovers {
                        server.recover().await;
                    }
                };
                let retaining = async {
                    if let Some(age) = server.retention {
                        server.app.keep_retaining(age).await;
                    }
                };
                tokio::join!(recovering, retaining, server.app.keep_sweeping());
            })
        };
        let drained = async {
            shutdown.await;
            let drained = self.drain(within).await;
            tracing::info!(?drained, "drain finished");
        };
        let served = listen::serve(listener, self.router(), self.connections, drained).await;
        recovering.abort();
        served
    }
}
