//! Builder of a worker.

use std::{collections::HashMap, fmt, sync::Arc, time::Duration};

use agent_core::{Error, Result, RunRequest, model::Backoff, run::new_id};
use agent_dispatch::{ChunkRelay, Claim, Job, Queue};

use super::{
    Inner, Shape, Worker,
    hooks::{NoHooks, WorkerHooks},
};
use crate::Agent;

/// Builder of a [`Worker`].
#[must_use]
pub struct WorkerBuilder {
    queue: Arc<dyn Queue>,
    agents: Vec<Agent>,
    name: Option<String>,
    at_once: usize,
    lease: Duration,
    poll: Duration,
    drain_within: Duration,
    backoff: Backoff,
    shape: Shape,
    relay: Option<Arc<dyn ChunkRelay>>,
    hooks: Arc<dyn WorkerHooks>,
}

impl WorkerBuilder {
    /// Minimum lease, so that a single slow network round trip does not delay the renewal too long.
    const SHORTEST: Duration = Duration::from_secs(1);

    pub(super) fn new(queue: Arc<dyn Queue>) -> Self {
        Self {
            queue,
            agents: Vec::new(),
            name: None,
            at_once: 16,
            lease: Duration::from_secs(30),
            poll: Duration::from_secs(1),
            drain_within: Duration::from_secs(20),
            backoff: Backoff::new(),
            shape: Arc::new(|_, request| Ok(request)),
            relay: None,
            hooks: Arc::new(NoHooks),
        }
    }

    /// Adds an agent, by its name. It needs the store that the workers share.
    pub fn agent(mut self, agent: Agent) -> Self {
        self.agents.push(agent);
        self
    }

    /// Sets the worker's name. Default: a unique name.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Sets the maximum number of concurrent runs. Default: 16; minimum: 1.
    pub fn at_once(mut self, most: usize) -> Self {
        self.at_once = most.max(1);
        self
    }

    /// Sets the duration of the lease on a run, which the worker renews three times per lease. If
    /// the worker dies, other workers take over its runs when the lease expires. Default: 30
    /// seconds; minimum: 1 second.
    ///
    /// The store holds a lease on the session as well, and another worker can resume a run only
    /// when both have expired, so give them the same duration.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = lease;
        self
    }

    /// Sets the interval at which the queue is polled even without a notification: for runs,
    /// signals and due schedules. Default: 1 second; minimum: 1 millisecond.
    pub fn poll(mut self, poll: Duration) -> Self {
        self.poll = poll.max(Duration::from_millis(1));
        self
    }

    /// Sets how long runs have to reach their next boundary when the worker shuts down. Default: 20
    /// seconds.
    pub fn drain_within(mut self, time: Duration) -> Self {
        self.drain_within = time;
        self
    }

    /// Sets the retry policy for runs that failed with a temporary error or whose worker died.
    /// Default: 4 more attempts, within seconds. A run that was suspended starts counting anew.
    pub fn attempts(mut self, backoff: Backoff) -> Self {
        self.backoff = backoff;
        self
    }

    /// Sets a function that adapts each job's request before it runs, for example to add the tools
    /// that the job's [`extra`](Job::extra) lists. It is called each time a run starts or resumes.
    /// An error moves the job to the dead letters, unless it is temporary.
    pub fn shape(mut self, shape: impl Fn(&Job, RunRequest) -> Result<RunRequest> + Send + Sync + 'static) -> Self {
        self.shape = Arc::new(shape);
        self
    }

    /// Sets the relay over which viewers in other processes receive chunks and other transient
    /// events of the runs. Default: none; such viewers receive complete messages from the journal.
    pub fn relay(mut self, relay: Arc<dyn ChunkRelay>) -> Self {
        self.relay = Some(relay);
        self
    }

    /// Sets hooks of the process around the worker: they choose the agent of each job, and observe
    /// its run. Default: none.
    pub fn hooks(mut self, hooks: Arc<dyn WorkerHooks>) -> Self {
        self.hooks = hooks;
        self
    }

    /// Builds the worker.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) if there is no agent, an agent has no
    /// store, two agents have the same name, or the lease is too short.
    pub fn build(self) -> Result<Worker> {
        if self.agents.is_empty() {
            return Err(Error::config("a worker needs an agent: give it one with agent(..)"));
        }
        let (least, lease) = (Self::SHORTEST, self.lease);
        if lease < least {
            return Err(Error::config(format!("a lease of {lease:?} cannot be kept: set {least:?} or more")));
        }
        let mut agents = HashMap::new();
        for agent in self.agents {
            let name = Arc::<str>::from(agent.name());
            if agent.store().is_none() {
                return Err(Error::config(format!(
                    "agent '{name}' keeps no runs, so that no worker could go on with them: give it the workers' store with store(..)"
                )));
            }
            if agents.insert(name.clone(), agent).is_some() {
                return Err(Error::config(format!("two agents are called '{name}': jobs name their agent")));
            }
        }
        let claim = Claim::new(self.name.unwrap_or_else(new_id), agents.keys().cloned(), lease);
        Ok(Worker(Arc::new(Inner {
            agents,
            queue: self.queue,
            claim,
            at_once: self.at_once,
            poll: self.poll,
            drain_within: self.drain_within,
            backoff: self.backoff,
            shape: self.shape,
            relay: self.relay,
            hooks: self.hooks,
        })))
    }
}

impl fmt::Debug for WorkerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerBuilder").field("agents", &self.agents).field("name", &self.name).finish_non_exhaustive()
    }
}
