//! Restate service that runs agents: [`AgentEndpoint`].

use std::{collections::HashMap, fmt, io, net::SocketAddr, sync::Arc, time::Duration};

use agent_core::{Error, Result, RunRequest, engine::Durable, run::new_id};
use agent_dispatch::Job;
use agent_exec::Agent;
use restate_sdk::{
    discovery,
    endpoint::{Endpoint, HandlerOptions, ServiceOptions},
    http_server::HttpServer,
    service::macro_support::service_definition,
};
use serde_json::json;
use tokio::net::{TcpListener, TcpSocket};

use crate::{
    DEFAULT_SERVICE,
    blobs::{BlobStore, Blobs},
    notes::{self, NotesObject},
    service::{SessionObject, Sessions, ToRequest, WrapEngine},
};

/// Restate service that runs agents. Each session is a virtual object, which one run writes at a
/// time; each run is an invocation, whose model calls, tool calls and decisions are steps that
/// Restate records.
///
/// Any number of processes may serve the same agents behind one address. Serve a changed agent
/// under a new address and [register](crate::Restate::register) it there: Restate drives the runs
/// that began at the old address to their end there.
#[derive(Clone)]
pub struct AgentEndpoint {
    service: String,
    sessions: Arc<Sessions>,
    limits: Limits,
    identity: Option<String>,
}

/// Effectively unlimited number of attempts at a run.
const FOREVER: u64 = u32::MAX as u64;

/// Time limits that are announced to Restate, and the drain time.
#[derive(Clone, Copy, Debug)]
struct Limits {
    leaves_after: Duration,
    gone_after: Duration,
    retention: Duration,
    drain: Duration,
}

/// Builder of an [`AgentEndpoint`].
#[must_use]
pub struct AgentEndpointBuilder {
    service: String,
    agents: Vec<Agent>,
    blobs: Option<Arc<dyn BlobStore>>,
    large: usize,
    limits: Limits,
    to_request: ToRequest,
    wrap: WrapEngine,
    identity: Option<String>,
    name: Option<String>,
}

impl AgentEndpoint {
    /// Returns a builder without agents.
    pub fn builder() -> AgentEndpointBuilder {
        const HOUR: Duration = Duration::from_secs(3600);
        AgentEndpointBuilder {
            service: DEFAULT_SERVICE.into(),
            agents: Vec::new(),
            blobs: None,
            large: 256 << 10,
            limits: Limits {
                leaves_after: Duration::from_secs(60),
                gone_after: Duration::from_secs(300),
                retention: 30 * 24 * HOUR,
                drain: Duration::from_secs(20),
            },
            to_request: Arc::new(|job| Ok(job.request())),
            wrap: Arc::new(|engine| engine),
            identity: None,
            name: None,
        }
    }

    /// Listens on `address` with `TCP_NODELAY`, which accepted connections inherit. Restate
    /// exchanges small messages at every step: without `TCP_NODELAY`, each step takes 44
    /// milliseconds longer.
    ///
    /// # Errors
    /// Errors of the operating system, such as an address in use.
    pub fn listen(address: SocketAddr) -> io::Result<TcpListener> {
        let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
        socket.set_reuseaddr(true)?;
        socket.set_nodelay(true)?; // accepted connections inherit it
        socket.bind(address)?;
        socket.listen(1024)
    }

    /// Serves until `shutdown` completes, and then until all active runs have reached a safe point,
    /// which is the end of their current calls, or the [drain
    /// time](AgentEndpointBuilder::drain_within) is over. Restate resumes the runs in another
    /// process, or in this service when it runs again.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) if the key of
    /// [`identity`](AgentEndpointBuilder::identity) is invalid.
    pub async fn serve(&self, listener: TcpListener, shutdown: impl Future) -> Result<()> {
        let server = HttpServer::new(self.endpoint()?);
        let drained = async {
            shutdown.await;
            self.sessions.present.leave(self.limits.drain).await;
        };
        server.serve_with_cancel(listener, drained).await;
        Ok(())
    }

    fn endpoint(&self) -> Result<Endpoint> {
        let sessions = service_definition(SessionObject(self.sessions.clone()), self.told_of_sessions()?);
        let notes = service_definition(NotesObject, self.told_of_notes()?);
        // A run survives every outage: by default the server would stop retrying after an hour and
        // wait for a manual resume.
        let run = HandlerOptions::new().idempotency_retention(self.limits.retention).retry_policy_max_attempts(FOREVER);
        let options = ServiceOptions::new()
            .inactivity_timeout(self.limits.leaves_after)
            .abort_timeout(self.limits.gone_after)
            .enable_lazy_state(true)
            .handler("run", run);
        let options = LOOKS.iter().fold(options, |options, (name, ..)| options.handler(*name, forgotten()));
        let of_notes =
            OF_NOTES.iter().fold(ServiceOptions::new(), |options, (name, ..)| options.handler(*name, forgotten()));
        let builder = Endpoint::builder().bind(sessions.options(options)).bind(notes.options(of_notes));
        let builder = match &self.identity {
            Some(key) => builder.identity_key(key).map_err(|e| {
                Error::config("invalid Restate identity key: it must begin with publickeyv1_").with_source(e)
            })?,
            None => builder,
        };
        Ok(builder.build())
    }

    /// Returns the discovery document of the session service.
    fn told_of_sessions(&self) -> Result<discovery::Service> {
        let run = ("run", "EXCLUSIVE", "Runs an agent on new messages.");
        let handlers: Vec<_> = std::iter::once(run).chain(LOOKS).collect();
        object(&self.service, "Sessions of agents: one object per session, one invocation of 'run' per run.", &handlers)
    }

    /// Returns the discovery document of the notes service.
    fn told_of_notes(&self) -> Result<discovery::Service> {
        object(&notes::service(&self.service), "Metadata of sessions that is written outside runs.", &OF_NOTES)
    }
}

/// Handler: name, kind and description.
type Handles = (&'static str, &'static str, &'static str);

/// Handlers of a session beside `run`.
const LOOKS: [Handles; 5] = [
    ("answer", "SHARED", "Answers the questions of the suspended run."),
    ("tell", "SHARED", "Steers, pauses or cancels the active run."),
    ("open", "SHARED", "Returns the active run."),
    ("head", "SHARED", "Returns the session's summary, without its content."),
    ("read", "SHARED", "Returns entries of the session."),
];

const OF_NOTES: [Handles; 2] = [
    ("note", "EXCLUSIVE", "Sets notes by key; null removes a note."),
    ("all", "SHARED", "Returns all notes of the session."),
];

/// Options for short calls: by default the server would retain their results, such as pages of
/// sessions, for a day.
fn forgotten() -> HandlerOptions {
    HandlerOptions::new().journal_retention(Duration::ZERO).idempotency_retention(Duration::ZERO)
}

/// Returns the discovery document of a virtual object with these handlers.
fn object(name: &str, what: &str, handlers: &[Handles]) -> Result<discovery::Service> {
    let handler = |(name, ty, what): &_| json!({"name": name, "ty": ty, "documentation": what});
    let handlers: Vec<_> = handlers.iter().map(handler).collect();
    let service = json!({"name": name, "ty": "VIRTUAL_OBJECT", "documentation": what, "handlers": handlers});
    serde_json::from_value(service)
        .map_err(|e| Error::config(format!("'{name}' is not a valid Restate service name")).with_source(e))
}

impl AgentEndpointBuilder {
    /// Adds an agent, which is served under its name. The agent must not have a store: its sessions
    /// are kept by Restate.
    pub fn agent(mut self, agent: Agent) -> Self {
        self.agents.push(agent);
        self
    }

    /// Sets the name of the service. Two deployments with different agents need different names.
    /// Default: `Sessions`.
    pub fn service(mut self, name: impl Into<String>) -> Self {
        self.service = name.into();
        self
    }

    /// Sets the blob store for large values, which all processes must share. Default: none, so that
    /// a step whose result exceeds 14 MiB fails.
    pub fn blobs(mut self, store: impl BlobStore) -> Self {
        self.blobs = Some(Arc::new(store));
        self
    }

    /// Sets the size in bytes of JSON from which a value is stored as a blob. Default: 256 KiB.
    pub fn large(mut self, bytes: usize) -> Self {
        self.large = bytes;
        self
    }

    /// Sets the inactivity timeout after which a suspended run leaves the process, at least 100
    /// milliseconds. Default: one minute.
    pub fn leaves_after(mut self, time: Duration) -> Self {
        self.limits.leaves_after = time;
        self
    }

    /// Sets the time, beyond [`leaves_after`](Self::leaves_after), that a run may be silent before
    /// Restate aborts the attempt and retries the run. A working run sends messages in time,
    /// however long its steps take, unless a tool blocks its thread. Default: five minutes.
    pub fn gone_after(mut self, time: Duration) -> Self {
        self.limits.gone_after = time;
        self
    }

    /// Sets the retention of a run's outcome for repeated dispatches and queries of the same run.
    /// Default: 30 days.
    pub fn retention(mut self, time: Duration) -> Self {
        self.limits.retention = time;
        self
    }

    /// Sets the time that runs have to reach a safe point on shutdown. Default: 20 seconds.
    pub fn drain_within(mut self, time: Duration) -> Self {
        self.limits.drain = time;
        self
    }

    /// Sets the conversion of a job to a request, which adds live handles and the tools of
    /// [`Job::extra`]. It must return the same request for the same job. Default: [`Job::request`].
    pub fn request(mut self, make: impl Fn(&Job) -> Result<RunRequest> + Send + Sync + 'static) -> Self {
        self.to_request = Arc::new(make);
        self
    }

    /// Wraps the engine of every run, so that the wrapper sees each step: to time steps, or to
    /// crash a test's process at one. The wrapper must keep all guarantees of the engine. Default:
    /// no wrapper.
    pub fn engine(mut self, wrap: impl Fn(Arc<dyn Durable>) -> Arc<dyn Durable> + Send + Sync + 'static) -> Self {
        self.wrap = Arc::new(wrap);
        self
    }

    /// Sets the public key of the Restate server or environment that may call this endpoint.
    /// Default: none, so that any client that reaches the address may call it.
    pub fn identity(mut self, key: impl Into<String>) -> Self {
        self.identity = Some(key.into());
        self
    }

    /// Sets the name of this process: the [worker](agent_core::RunIds::worker) in a run's journal.
    /// Default: a unique name.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Builds the endpoint.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) if there is no agent, two agents have
    /// the same name, an agent has a store, the service name or the identity key is invalid, or
    /// `leaves_after` is too short.
    pub fn build(self) -> Result<AgentEndpoint> {
        let mut agents = HashMap::new();
        for agent in self.agents {
            let name = Arc::<str>::from(agent.name());
            if agent.store().is_some() {
                return Err(Error::config(format!(
                    "agent '{name}' has a store, but Restate keeps its sessions: build it without a store"
                )));
            }
            if agents.insert(name.clone(), agent).is_some() {
                return Err(Error::config(format!("there are two agents '{name}': rename one of them")));
            }
        }
        if agents.is_empty() {
            return Err(Error::config("the endpoint has no agents: add one with agent(..)"));
        }
        if self.limits.leaves_after < Duration::from_millis(100) {
            return Err(Error::config("leaves_after is too short: set it to 100 ms or more"));
        }
        let blobs = Blobs::new(self.blobs, self.large);
        // Restate asks a silent run to leave, and would then abort its steps: send a message twice
        // as often.
        let patience = self.limits.leaves_after / 2;
        let worker = self.name.unwrap_or_else(new_id).into();
        let sessions = Arc::new(Sessions::new(agents, blobs, patience, worker, self.to_request, self.wrap));
        let endpoint = AgentEndpoint { service: self.service, sessions, limits: self.limits, identity: self.identity };
        endpoint.endpoint()?;
        Ok(endpoint)
    }
}

impl fmt::Debug for AgentEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentEndpoint")
            .field("service", &self.service)
            .field("sessions", &self.sessions)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for AgentEndpointBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let agents: Vec<_> = self.agents.iter().map(Agent::name).collect();
        f.debug_struct("AgentEndpointBuilder")
            .field("service", &self.service)
            .field("agents", &agents)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}
