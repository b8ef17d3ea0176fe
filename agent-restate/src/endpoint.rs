//! Agents as a Restate service: [`AgentEndpoint`].

use std::{collections::HashMap, fmt, io, net::SocketAddr, sync::Arc, time::Duration};

use agent_core::{Error, Result, RunRequest, dispatch::Job, engine::Durable, run::new_id};
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

/// Agents as a Restate service. Each session is a virtual object, which one run writes at a time; each run is an invocation, whose
/// model calls, tool calls and decisions are steps that Restate keeps.
///
/// Any number of processes may serve the same agents, behind one address. An agent that changed is served under an address of its
/// own and [registered](crate::Restate::register) there: Restate drives the runs that began at the old one there to their end.
#[derive(Clone)]
pub struct AgentEndpoint {
    service: String,
    sessions: Arc<Sessions>,
    limits: Limits,
    identity: Option<String>,
}

/// More attempts at a run than time has room for.
const FOREVER: u64 = u32::MAX as u64;

/// What of time Restate is told.
#[derive(Clone, Copy, Debug)]
struct Limits {
    leaves_after: Duration,
    gone_after: Duration,
    retention: Duration,
    drain: Duration,
}

/// Makes an [`AgentEndpoint`].
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
    /// A builder without agents.
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

    /// Listens on `address`. Restate answers step by step, so that small packets are sent at once: a listener that is made otherwise
    /// costs 44 milliseconds a step, unless `TCP_NODELAY` is set on it before it listens.
    ///
    /// # Errors
    /// Those of the operating system, such as an address that is taken.
    pub fn listen(address: SocketAddr) -> io::Result<TcpListener> {
        let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
        socket.set_reuseaddr(true)?;
        socket.set_nodelay(true)?; // what is accepted has it too
        socket.bind(address)?;
        socket.listen(1024)
    }

    /// Serves until `shutdown` is done, and until the runs under way reached a safe point then, which is the end of the calls that they make, or ran out of
    /// [their time](AgentEndpointBuilder::drain_within). Restate drives them on elsewhere, or here, when there is a process again.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) if the key of [`identity`](AgentEndpointBuilder::identity) is none.
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
        // A run outlives every outage: the server alone would give up after an hour, until somebody resumes the run by hand.
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
                Error::config("the identity key of Restate is none: it begins with publickeyv1_").with_source(e)
            })?,
            None => builder,
        };
        Ok(builder.build())
    }

    /// What Restate is told of the sessions.
    fn told_of_sessions(&self) -> Result<discovery::Service> {
        let run = ("run", "EXCLUSIVE", "Runs an agent on new messages.");
        let handlers: Vec<_> = std::iter::once(run).chain(LOOKS).collect();
        object(&self.service, "Sessions of agents: each is an object, and a run an invocation of 'run'.", &handlers)
    }

    /// What Restate is told of the notes.
    fn told_of_notes(&self) -> Result<discovery::Service> {
        object(&notes::service(&self.service), "What others than runs note of sessions.", &OF_NOTES)
    }
}

/// A handler: its name, its kind, and what it is for.
type Handles = (&'static str, &'static str, &'static str);

/// What is asked and told of a session beside its runs.
const LOOKS: [Handles; 5] = [
    ("answer", "SHARED", "Answers the questions of the run that waits."),
    ("tell", "SHARED", "Steers, pauses or cancels the run that is under way."),
    ("open", "SHARED", "The run that is under way."),
    ("head", "SHARED", "How far the session goes, and what is known of it without its content."),
    ("read", "SHARED", "Entries of the session."),
];

const OF_NOTES: [Handles; 2] = [
    ("note", "EXCLUSIVE", "Notes values by their keys, and takes away those that are null."),
    ("all", "SHARED", "All notes of the session."),
];

/// For calls that are over in a moment: the server would keep what they gave, such as pages of sessions, for a day.
fn forgotten() -> HandlerOptions {
    HandlerOptions::new().journal_retention(Duration::ZERO).idempotency_retention(Duration::ZERO)
}

/// A virtual object with these handlers.
fn object(name: &str, what: &str, handlers: &[Handles]) -> Result<discovery::Service> {
    let handler = |(name, ty, what): &_| json!({"name": name, "ty": ty, "documentation": what});
    let handlers: Vec<_> = handlers.iter().map(handler).collect();
    let service = json!({"name": name, "ty": "VIRTUAL_OBJECT", "documentation": what, "handlers": handlers});
    serde_json::from_value(service)
        .map_err(|e| Error::config(format!("'{name}' is no name of a Restate service")).with_source(e))
}

impl AgentEndpointBuilder {
    /// Serves this agent, by its name. It has no store of its own: its sessions are Restate's.
    pub fn agent(mut self, agent: Agent) -> Self {
        self.agents.push(agent);
        self
    }

    /// The name of the service. Two deployments with different agents need different ones. Default: `Sessions`.
    pub fn service(mut self, name: impl Into<String>) -> Self {
        self.service = name.into();
        self
    }

    /// Keeps what is large outside Restate's journal, by its content. All processes see the same store. Default: none, so that a
    /// step that gives more than 14 MiB fails.
    pub fn blobs(mut self, store: impl BlobStore) -> Self {
        self.blobs = Some(Arc::new(store));
        self
    }

    /// From how many bytes of JSON on something is large. Default: 256 KiB.
    pub fn large(mut self, bytes: usize) -> Self {
        self.large = bytes;
        self
    }

    /// After which time without a word a run that waits leaves the process: at least a tenth of a second. Default: a minute.
    pub fn leaves_after(mut self, time: Duration) -> Self {
        self.limits.leaves_after = time;
        self
    }

    /// How long a run may say nothing, beyond [`leaves_after`](Self::leaves_after), before Restate cuts it off and drives it again. A run that works
    /// speaks in time, however long its steps take; one of which a tool blocks the thread does not. Default: five minutes.
    pub fn gone_after(mut self, time: Duration) -> Self {
        self.limits.gone_after = time;
        self
    }

    /// For how long a run's end is kept for whoever sends the same run again, or asks for it. Default: 30 days.
    pub fn retention(mut self, time: Duration) -> Self {
        self.limits.retention = time;
        self
    }

    /// How long runs have to reach a safe point when the process is told to end. Default: 20 seconds.
    pub fn drain_within(mut self, time: Duration) -> Self {
        self.limits.drain = time;
        self
    }

    /// How a job becomes a request: where live handles and the tools of [`Job::extra`] are added. It must give the same request for
    /// the same job. Default: [`Job::request`].
    pub fn request(mut self, make: impl Fn(&Job) -> Result<RunRequest> + Send + Sync + 'static) -> Self {
        self.to_request = Arc::new(make);
        self
    }

    /// Has the engine of every run go through this, which sees each step: to time steps, or to let a test's process die at one. What it gives
    /// must keep all that the engine keeps. Default: the engine itself.
    pub fn engine(mut self, wrap: impl Fn(Arc<dyn Durable>) -> Arc<dyn Durable> + Send + Sync + 'static) -> Self {
        self.wrap = Arc::new(wrap);
        self
    }

    /// The public key of the Restate server or environment that may call this endpoint. Default: whoever reaches the address may.
    pub fn identity(mut self, key: impl Into<String>) -> Self {
        self.identity = Some(key.into());
        self
    }

    /// Sets what the process calls itself: the [worker](agent_core::RunIds::worker) that a run's journal names. Default: a name that nobody else has.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// The endpoint.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) if there is no agent, two have one name, one has a store of its own, the
    /// service's name is none, the identity key is none, or `leaves_after` is too short.
    pub fn build(self) -> Result<AgentEndpoint> {
        let mut agents = HashMap::new();
        for agent in self.agents {
            let name = Arc::<str>::from(agent.name());
            if agent.store().is_some() {
                return Err(Error::config(format!(
                    "agent '{name}' has a store, but its sessions are Restate's: build it without"
                )));
            }
            if agents.insert(name.clone(), agent).is_some() {
                return Err(Error::config(format!("there are two agents '{name}': give one another name")));
            }
        }
        if agents.is_empty() {
            return Err(Error::config("the endpoint serves no agent: give it one with agent(..)"));
        }
        if self.limits.leaves_after < Duration::from_millis(100) {
            return Err(Error::config(
                "leaves_after is too short: a run that works says so twice as often; give it 100 ms or more",
            ));
        }
        let blobs = Blobs::new(self.blobs, self.large);
        // Restate asks a silent run to leave, and would cut off its steps.
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
