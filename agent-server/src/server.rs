//! The server: what is served, and how.

use std::{future::Future, sync::Arc, time::Duration};

use agent::{
    Drain, Error, Result,
    journal::{Journal, MemoryJournal},
};
use axum::Router;
use tokio::net::TcpListener;

use crate::{
    app::{App, Served},
    router,
};

/// Agents that are served, ready for requests.
#[derive(Clone, Debug)]
pub struct Server {
    app: App,
}

/// What is served, and how.
#[derive(Default)]
#[must_use = "a builder does nothing until it is built"]
pub struct ServerBuilder {
    agents: Vec<Served>,
    journal: Option<Arc<dyn Journal>>,
}

impl Server {
    /// Nothing is served yet.
    pub fn builder() -> ServerBuilder {
        ServerBuilder::default()
    }

    /// The routes, to be merged or nested into an application of your own.
    pub fn router(&self) -> Router {
        router::router(self.app.clone())
    }

    /// The agents, their runs and sessions.
    pub fn app(&self) -> &App {
        &self.app
    }

    /// Serves until `shutdown` is ready, and then drains: no run begins any more, those under way reach a safe point `within` this time and
    /// can be gone on with by another process.
    ///
    /// # Errors
    /// Those of the listener.
    pub async fn serve(
        &self,
        listener: TcpListener,
        shutdown: impl Future<Output = ()> + Send + 'static,
        within: Duration,
    ) -> std::io::Result<()> {
        let app = self.app.clone();
        let drained = async move {
            shutdown.await;
            app.drain().drain(within).await;
        };
        axum::serve(listener, self.router()).with_graceful_shutdown(drained).await
    }
}

impl ServerBuilder {
    /// Serves an agent.
    pub fn agent(mut self, agent: impl Into<Served>) -> Self {
        self.agents.push(agent.into());
        self
    }

    /// Serves these agents.
    pub fn agents(mut self, agents: impl IntoIterator<Item = impl Into<Served>>) -> Self {
        self.agents.extend(agents.into_iter().map(Into::into));
        self
    }

    /// Sets where the sessions of all agents are kept. Default: the store that the agents have, or else memory.
    pub fn store(mut self, journal: impl Journal) -> Self {
        self.journal = Some(Arc::new(journal));
        self
    }

    /// The server.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent::ErrorKind::Config) if there is no agent, if two have one name, or if they have different
    /// stores.
    pub fn build(self) -> Result<Server> {
        let journal = store(self.journal, &self.agents)?;
        let drain = Drain::new();
        let mut agents = Vec::with_capacity(self.agents.len());
        for served in self.agents {
            let name = served.name();
            if agents.iter().any(|other: &Served| other.name() == name) {
                return Err(Error::config(format!("two agents are named '{name}': give one another name")));
            }
            let agent = served.agent().to_builder().store(journal.clone()).drain(&drain).build()?;
            agents.push(Served::new(agent).description(served.about()));
        }
        if agents.is_empty() {
            return Err(Error::config("a server needs an agent: give it one with agent(..)"));
        }
        Ok(Server { app: App::new(agents, journal, drain) })
    }
}

/// The one store of all.
fn store(named: Option<Arc<dyn Journal>>, agents: &[Served]) -> Result<Arc<dyn Journal>> {
    let theirs: Vec<_> = agents.iter().filter_map(|served| served.agent().store()).collect();
    let journal = named.or_else(|| theirs.first().copied().cloned());
    let journal = journal.unwrap_or_else(|| Arc::new(MemoryJournal::default()));
    if theirs.iter().all(|one| Arc::ptr_eq(one, &journal)) {
        return Ok(journal);
    }
    Err(Error::config("the agents have different stores: give them one, or none and the server its store"))
}

impl std::fmt::Debug for ServerBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerBuilder").field("agents", &self.agents).finish_non_exhaustive()
    }
}
