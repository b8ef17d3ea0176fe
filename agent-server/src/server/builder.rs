//! Builder of a server.

use std::{fmt, sync::Arc, time::Duration};

use agent::{
    Drain, Error, Result,
    dispatch::{ChunkRelay, Dispatch, QueueAdmin},
    journal::{Journal, MemoryJournal},
};

use super::Server;
use crate::{
    a2a,
    app::{App, AppParts, Hooks, InJournal, Notes, Served},
    auth::{Auth, Keys},
    files::Files,
    guard::Guard,
    router::Guards,
    spending::Spending,
    studio::Studio,
    teams::{ServedTeam, Teams},
    webhooks::Webhooks,
};

/// Default maximum size of a body in bytes.
const BODY: usize = 8 << 20;
/// Default maximum number of connections.
const CONNECTIONS: usize = 12_000;
/// Default maximum number of event streams.
const STREAMS: usize = 10_000;

/// Builder of a [`Server`].
#[must_use = "a builder does nothing until it is built"]
pub struct ServerBuilder {
    agents: Vec<Served>,
    teams: Vec<ServedTeam>,
    journal: Option<Arc<dyn Journal>>,
    keys: Option<Keys>,
    #[cfg(feature = "oidc")]
    oidc: Option<crate::Oidc>,
    hosts: Vec<String>,
    origins: Vec<String>,
    body: usize,
    connections: usize,
    streams: usize,
    public_cards: bool,
    recovers: bool,
    retention: Option<Duration>,
    studio: Option<Studio>,
    dispatch: Option<Arc<dyn Dispatch>>,
    queue: Option<Arc<dyn QueueAdmin>>,
    relay: Option<Arc<dyn ChunkRelay>>,
    webhooks: Option<Webhooks>,
    notes: Option<Arc<dyn Notes>>,
    files: Option<Files>,
    spending: Option<Spending>,
}

impl Default for ServerBuilder {
    fn default() -> Self {
        Self {
            agents: Vec::new(),
            teams: Vec::new(),
            journal: None,
            keys: None,
            #[cfg(feature = "oidc")]
            oidc: None,
            hosts: Vec::new(),
            origins: Vec::new(),
            body: BODY,
            connections: CONNECTIONS,
            streams: STREAMS,
            public_cards: false,
            recovers: true,
            retention: None,
            studio: None,
            dispatch: None,
            queue: None,
            relay: None,
            webhooks: None,
            notes: None,
            files: None,
            spending: None,
        }
    }
}

impl ServerBuilder {
    /// Adds an agent.
    pub fn agent(mut self, agent: impl Into<Served>) -> Self {
        self.agents.push(agent.into());
        self
    }

    /// Adds agents.
    pub fn agents(mut self, agents: impl IntoIterator<Item = impl Into<Served>>) -> Self {
        self.agents.extend(agents.into_iter().map(Into::into));
        self
    }

    /// Adds a team. `/api/teams` serves it, and every other protocol serves it as one agent with the name
    /// of the team.
    pub fn team(mut self, team: impl Into<ServedTeam>) -> Self {
        self.teams.push(team.into());
        self
    }

    /// Sets the store of all sessions, which replaces the agents' own stores. Default: the store of
    /// the agents, or else an in-memory one.
    pub fn store(mut self, journal: impl Journal) -> Self {
        self.journal = Some(Arc::new(journal));
        self
    }

    /// Sets the API keys. Default: none, so that every client that reaches the server acts as the
    /// tenant `local`; requests must then use a local host name.
    pub fn keys(mut self, keys: Keys) -> Self {
        self.keys = Some(keys);
        self
    }

    /// Accepts bearer tokens of an OpenID Connect issuer, beside keys.
    #[cfg(feature = "oidc")]
    pub fn oidc(mut self, oidc: crate::Oidc) -> Self {
        self.oidc = Some(oidc);
        self
    }

    /// Accepts this host name, such as `agents.example` or `agents.example:8080`, beside
    /// `localhost` and loopback addresses. With keys, any host name is accepted unless one is set
    /// here.
    pub fn host(mut self, name: impl Into<String>) -> Self {
        self.hosts.push(name.into().to_ascii_lowercase());
        self
    }

    /// Allows cross-origin requests from this origin, such as `https://shop.example`. Default: same
    /// origin only.
    pub fn origin(mut self, origin: impl Into<String>) -> Self {
        self.origins.push(origin.into());
        self
    }

    /// Sets the maximum size of a body in bytes. Default: 8 MiB.
    pub fn max_body(mut self, bytes: usize) -> Self {
        self.body = bytes;
        self
    }

    /// Sets the maximum number of connections; further ones wait. Default: 12,000.
    pub fn max_connections(mut self, most: usize) -> Self {
        self.connections = most;
        self
    }

    /// Sets the maximum number of event streams; further ones are rejected with 429. Default:
    /// 10,000.
    pub fn max_streams(mut self, most: usize) -> Self {
        self.streams = most;
        self
    }

    /// Sets whether the agent cards (Agent2Agent) with names and descriptions are public, so that
    /// other agents discover them without a key. Default: authenticated callers only.
    pub fn public_cards(mut self, yes: bool) -> Self {
        self.public_cards = yes;
        self
    }

    /// Sets whether [`serve`](Server::serve) resumes runs whose process died. Default: true.
    pub fn recovery(mut self, yes: bool) -> Self {
        self.recovers = yes;
        self
    }

    /// Deletes sessions whose newest entry is older than `age`, and jobs that finished longer ago, of
    /// all tenants, once an hour while the server [serves](Server::serve). Sessions in use are kept.
    /// Default: everything is kept.
    pub fn retention(mut self, age: Duration) -> Self {
        self.retention = Some(age);
        self
    }

    /// Dispatches all runs to another execution backend: starts, answers and signals. This process
    /// then only reads the shared store, and resumes nothing by itself. The receiver of a job
    /// converts it with [`request_of`](crate::request_of). A run continues when its client
    /// disconnects. Default: runs execute in this process.
    pub fn dispatch(mut self, dispatch: Arc<dyn Dispatch>) -> Self {
        self.dispatch = Some(dispatch);
        self
    }

    /// Like [`dispatch`](Self::dispatch), to workers that claim jobs from this queue:
    /// `GET /api/runs` lists its jobs.
    pub fn queue<Q: QueueAdmin>(mut self, queue: Arc<Q>) -> Self {
        self.queue = Some(queue.clone());
        self.dispatch(queue)
    }

    /// Sets the relay over which viewers receive chunks and other transient events of runs that
    /// other processes execute: workers, and servers with the same store. Give those processes a
    /// relay of the same kind. Default: none; such viewers receive complete messages.
    pub fn relay(mut self, relay: Arc<dyn ChunkRelay>) -> Self {
        self.relay = Some(relay);
        self
    }

    /// Serves the web UI at `/studio/`. Default: none.
    pub fn studio(mut self, studio: Studio) -> Self {
        self.studio = Some(studio);
        self
    }

    /// Enables webhooks, which clients configure per run. Default: disabled.
    pub fn webhooks(mut self, webhooks: Webhooks) -> Self {
        self.webhooks = Some(webhooks);
        self
    }

    /// Sets the storage of webhook metadata. Default: the server's store; a store that only runs
    /// can write to needs another one.
    pub fn notes(mut self, notes: impl Notes) -> Self {
        self.notes = Some(Arc::new(notes));
        self
    }

    /// Enables file uploads. Default: disabled; images and documents are then sent inline or by
    /// URL.
    pub fn files(mut self, files: Files) -> Self {
        self.files = Some(files);
        self
    }

    /// Counts the spending of keys and tenants per day and month, and rejects runs beyond the
    /// limits with 429. Active runs continue with what they have reserved. Default: no counting,
    /// and keys must not have such limits.
    pub fn spending(mut self, spending: Spending) -> Self {
        self.spending = Some(spending);
        self
    }

    /// Builds the server.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent::ErrorKind::Config) if there is neither an agent nor a store,
    /// two agents have the same name, the agents have different stores and the server has none, the
    /// key list is empty, a key has a daily or monthly money limit without
    /// [`spending`](Self::spending), or the webhook settings are invalid.
    pub fn build(self) -> Result<Server> {
        if self.agents.is_empty() && self.teams.is_empty() && self.journal.is_none() {
            return Err(Error::config("the server has no agents: add one with agent(..)"));
        }
        let journal = self.journal.map_or_else(|| store(&self.agents), Ok)?;
        let drain = Drain::new();
        let teams = Teams::new(self.teams, &journal, &drain)?;
        let mut agents = Vec::with_capacity(self.agents.len());
        for served in self.agents.into_iter().chain(teams.as_agents()?) {
            let name = served.name();
            if agents.iter().any(|other: &Served| other.name() == name) {
                return Err(Error::config(format!("two agents are named '{name}': rename one of them")));
            }
            agents.push(served.on(&journal, &drain, self.files.as_ref())?);
        }
        if self.keys.as_ref().is_some_and(Keys::is_empty) {
            return Err(Error::config("the key list is empty: no client could authenticate"));
        }
        if self.spending.is_none() && self.keys.as_ref().is_some_and(|keys| !keys.allowances().is_empty()) {
            return Err(Error::config(
                "keys have 'cost_per_day' or 'cost_per_month', but spending is not counted: set spending(..)",
            ));
        }
        let auth = Auth::new(
            self.keys,
            #[cfg(feature = "oidc")]
            self.oidc,
        );
        let hosts = (auth.is_open() || !self.hosts.is_empty()).then_some(self.hosts);
        let guards = Guards {
            auth,
            guard: Guard::new(hosts, self.origins.clone()),
            origins: self.origins,
            body: self.body,
            public_cards: self.public_cards,
        };
        let teller = self.webhooks.map(Webhooks::build).transpose()?;
        let hooks = teller.map(|teller| Hooks::new(teller, a2a::notification));
        let notes = self.notes.unwrap_or_else(|| Arc::new(InJournal(journal.clone())));
        let app = App::new(AppParts {
            agents,
            journal,
            drain,
            streams: self.streams,
            dispatch: self.dispatch,
            queue: self.queue,
            relay: self.relay,
            notes,
            hooks,
            files: self.files,
            spending: self.spending,
        });
        Ok(Server {
            app,
            teams,
            guards,
            connections: self.connections,
            recovers: self.recovers,
            retention: self.retention,
            studio: self.studio,
        })
    }
}

/// Returns the common store of all agents.
fn store(agents: &[Served]) -> Result<Arc<dyn Journal>> {
    let theirs: Vec<_> = agents.iter().filter_map(|served| served.agent().store()).collect();
    let journal = theirs.first().map_or_else(|| Arc::new(MemoryJournal::default()) as _, |store| (*store).clone());
    if theirs.iter().all(|one| Arc::ptr_eq(one, &journal)) {
        return Ok(journal);
    }
    Err(Error::config("the agents have different stores: set the server's store and remove theirs"))
}

impl fmt::Debug for ServerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerBuilder").field("agents", &self.agents).finish_non_exhaustive()
    }
}
