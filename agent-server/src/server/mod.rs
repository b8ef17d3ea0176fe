//! The server: what is served, and how.

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
};

/// Agents that are served, ready for requests. Cheap to clone.
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
    guards: Guards,
    connections: usize,
    recovers: bool,
    studio: Option<Studio>,
}

impl Server {
    /// Nothing is served yet.
    pub fn builder() -> ServerBuilder {
        ServerBuilder::default()
    }

    /// The routes, with all that guards them, to be merged into an application of your own. Connections, and going on with what was
    /// under way ([`recover`](Self::recover)), are then the application's matter.
    pub fn router(&self) -> Router {
        let api = router::router(&self.app, &self.guards);
        match self.studio {
            Some(studio) => studio.beside(api, self.app.files().is_ok()),
            None => api,
        }
    }

    /// The agents, their runs and sessions.
    pub fn app(&self) -> &App {
        &self.app
    }

    /// True if whoever reaches the server may ask: there are no keys.
    pub fn is_open(&self) -> bool {
        self.guards.auth.is_open()
    }

    /// Goes on with the runs that were under way when a process died that had this store, now and whenever one does: those that are
    /// found stopped in the journal, and those that wait for their turn, a few at a time. Runs that wait for answers, that failed, and that somebody paused or cancelled are left.
    /// It ends when the server [drains](Self::drain).
    pub async fn recover(&self) {
        self.app.keep_recovering().await;
    }

    /// Lets no run begin any more and brings those under way to a safe point `within` this time, from which another process goes on.
    pub async fn drain(&self, within: Duration) -> agent::exec::Drained {
        self.app.end_runs(within).await
    }

    /// Serves, and [recovers](Self::recover) unless the builder said otherwise, until `shutdown` is ready; then [drains](Self::drain) `within` this time, while readers get the
    /// events that are left.
    ///
    /// # Errors
    /// Those of the listener.
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
                tokio::join!(recovering, server.app.keep_sweeping());
            })
        };
        let drained = async {
            shutdown.await;
            let drained = self.drain(within).await;
            tracing::info!(?drained, "no run is under way any more");
        };
        let served = listen::serve(listener, self.router(), self.connections, drained).await;
        recovering.abort();
        served
    }
}
