//! What a server is made of.

use std::{fmt, sync::Arc};

use agent::{
    Drain, Error, Result,
    core::dispatch::{Dispatch, Upkeep},
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
    webhooks::Webhooks,
};

/// Bytes of a body at most.
const BODY: usize = 8 << 20;
/// Connections at a time.
const CONNECTIONS: usize = 12_000;
/// Streams of events at a time.
const STREAMS: usize = 10_000;

/// What is served, and how.
#[must_use = "a builder does nothing until it is built"]
pub struct ServerBuilder {
    agents: Vec<Served>,
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
    studio: Option<Studio>,
    dispatch: Option<Arc<dyn Dispatch>>,
    queue: Option<Arc<dyn Upkeep>>,
    webhooks: Option<Webhooks>,
    notes: Option<Arc<dyn Notes>>,
    files: Option<Files>,
    spending: Option<Spending>,
}

impl Default for ServerBuilder {
    fn default() -> Self {
        Self {
            agents: Vec::new(),
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
            studio: None,
            dispatch: None,
            queue: None,
            webhooks: None,
            notes: None,
            files: None,
            spending: None,
        }
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

    /// Sets where the sessions of all agents are kept, whatever store they have. Default: the store that the agents have, or else memory.
    pub fn store(mut self, journal: impl Journal) -> Self {
        self.journal = Some(Arc::new(journal));
        self
    }

    /// Sets who may ask. Default: whoever reaches the server, as the one tenant `local`; requests are then taken by the names of this
    /// machine alone.
    pub fn keys(mut self, keys: Keys) -> Self {
        self.keys = Some(keys);
        self
    }

    /// Lets callers ask who come with tokens of an issuer, beside those who have a key.
    #[cfg(feature = "oidc")]
    pub fn oidc(mut self, oidc: crate::Oidc) -> Self {
        self.oidc = Some(oidc);
        self
    }

    /// Takes requests by this name, such as `agents.example` or `agents.example:8080`, beside `localhost` and loopback addresses. With
    /// keys any name is taken, unless one is allowed here: then no other is.
    pub fn host(mut self, name: impl Into<String>) -> Self {
        self.hosts.push(name.into().to_ascii_lowercase());
        self
    }

    /// Lets pages of this origin ask, such as `https://shop.example`. Default: those of the server itself.
    pub fn origin(mut self, origin: impl Into<String>) -> Self {
        self.origins.push(origin.into());
        self
    }

    /// Sets how many bytes a body may have. Default: 8 MiB.
    pub fn max_body(mut self, bytes: usize) -> Self {
        self.body = bytes;
        self
    }

    /// Sets how many connections there may be at a time; more wait. Default: 12,000.
    pub fn max_connections(mut self, most: usize) -> Self {
        self.connections = most;
        self
    }

    /// Sets how many streams of events there may be at a time; one more is answered 429. Default: 10,000.
    pub fn max_streams(mut self, most: usize) -> Self {
        self.streams = most;
        self
    }

    /// Says whether everybody may read the agents' cards (Agent2Agent), which tell their names and what they are good for: other agents find
    /// them without a key. Default: callers alone.
    pub fn public_cards(mut self, yes: bool) -> Self {
        self.public_cards = yes;
        self
    }

    /// Says whether [`serve`](Server::serve) goes on by itself with runs whose process died. Default: it does.
    pub fn recovery(mut self, yes: bool) -> Self {
        self.recovers = yes;
        self
    }

    /// Hands all runs to whoever runs the agents elsewhere: starts, answers, and what runs are told. This process then reads the store,
    /// which both sides have, and goes on with nothing by itself. Whoever takes a job makes it a request with
    /// [`request_of`](crate::request_of). A run goes on when its client goes away. Default: runs are of this process.
    pub fn dispatch(mut self, dispatch: Arc<dyn Dispatch>) -> Self {
        self.dispatch = Some(dispatch);
        self
    }

    /// As [`dispatch`](Self::dispatch), to workers that take their jobs from this queue: `GET /api/runs` lists what is in it.
    pub fn queue<Q: Upkeep>(mut self, queue: Arc<Q>) -> Self {
        self.queue = Some(queue.clone());
        self.dispatch(queue)
    }

    /// Serves a page for people, at `/studio/`. Default: none.
    pub fn studio(mut self, studio: Studio) -> Self {
        self.studio = Some(studio);
        self
    }

    /// Tells programs elsewhere what becomes of runs, as whoever starts one wishes. Default: nobody is told.
    pub fn webhooks(mut self, webhooks: Webhooks) -> Self {
        self.webhooks = Some(webhooks);
        self
    }

    /// Keeps what it notes of sessions for webhooks here. Default: in its store; one whose sessions are only written by their runs needs another place.
    pub fn notes(mut self, notes: impl Notes) -> Self {
        self.notes = Some(Arc::new(notes));
        self
    }

    /// Takes files that clients upload. Default: none; images and documents are in the messages, or at addresses of the web.
    pub fn files(mut self, files: Files) -> Self {
        self.files = Some(files);
        self
    }

    /// Counts what keys and tenants spend, in a day and in a month, and lets no run begin or go on for whoever has spent what they may: it is
    /// answered 429. Runs under way end with what they have. Default: nothing is counted, and no key may have such a limit.
    pub fn spending(mut self, spending: Spending) -> Self {
        self.spending = Some(spending);
        self
    }

    /// The server.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent::ErrorKind::Config) if there is neither an agent nor a store, if two agents have one name, if they have
    /// different stores and the server has none, if there are keys without a row, if a key has a limit of money in a day or a month and nobody counts it, or for webhooks that
    /// cannot be.
    pub fn build(self) -> Result<Server> {
        if self.agents.is_empty() && self.journal.is_none() {
            return Err(Error::config("a server needs an agent: give it one with agent(..)"));
        }
        let journal = self.journal.map_or_else(|| store(&self.agents), Ok)?;
        let drain = Drain::new();
        let mut agents = Vec::with_capacity(self.agents.len());
        for served in self.agents {
            let name = served.name();
            if agents.iter().any(|other: &Served| other.name() == name) {
                return Err(Error::config(format!("two agents are named '{name}': give one another name")));
            }
            agents.push(served.on(&journal, &drain, self.files.as_ref())?);
        }
        if self.keys.as_ref().is_some_and(Keys::is_empty) {
            return Err(Error::config("there are keys without a row: nobody could ask"));
        }
        if self.spending.is_none() && self.keys.as_ref().is_some_and(|keys| !keys.allowances().is_empty()) {
            return Err(Error::config(
                "keys have 'cost_per_day' or 'cost_per_month', which nobody counts: set spending(..)",
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
        let hooks = teller.map(|teller| Hooks::new(teller, a2a::of_view));
        let notes = self.notes.unwrap_or_else(|| Arc::new(InJournal(journal.clone())));
        let app = App::new(AppParts {
            agents,
            journal,
            drain,
            streams: self.streams,
            dispatch: self.dispatch,
            queue: self.queue,
            notes,
            hooks,
            files: self.files,
            spending: self.spending,
        });
        Ok(Server { app, guards, connections: self.connections, recovers: self.recovers, studio: self.studio })
    }
}

/// The one store of all agents.
fn store(agents: &[Served]) -> Result<Arc<dyn Journal>> {
    let theirs: Vec<_> = agents.iter().filter_map(|served| served.agent().store()).collect();
    let journal = theirs.first().map_or_else(|| Arc::new(MemoryJournal::default()) as _, |store| (*store).clone());
    if theirs.iter().all(|one| Arc::ptr_eq(one, &journal)) {
        return Ok(journal);
    }
    Err(Error::config("the agents have stores of their own: give the server its store, and the agents none"))
}

impl fmt::Debug for ServerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerBuilder").field("agents", &self.agents).finish_non_exhaustive()
    }
}
