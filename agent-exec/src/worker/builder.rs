//! How a worker is built.

use std::{collections::HashMap, fmt, sync::Arc, time::Duration};

use agent_core::{
    Error, Result, RunRequest,
    dispatch::{Claim, Job, Queue},
    model::Backoff,
    run::new_id,
};

use super::{Inner, Shape, Worker};
use crate::Agent;

/// Settings of a [`Worker`].
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
}

impl WorkerBuilder {
    /// The shortest lease: its renewal must not come too late because the network was slow once.
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
        }
    }

    /// Adds an agent, by its name. It needs the store that the workers share.
    pub fn agent(mut self, agent: Agent) -> Self {
        self.agents.push(agent);
        self
    }

    /// Sets what the worker calls itself. Default: a name that nobody else has.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Sets how many runs are under way at once. Default: 16; at least one.
    pub fn at_once(mut self, most: usize) -> Self {
        self.at_once = most.max(1);
        self
    }

    /// Sets how long a run is this worker's own after it last said that it lives, which it says thrice as often. When it has died, others take its runs over after
    /// this time. Default: 30 seconds; at least one second.
    ///
    /// The store has a lease on the session, too: a run goes on elsewhere when both have run out, so give them the same.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = lease;
        self
    }

    /// Sets after which time the queue is asked though nobody said that there is something: for runs, for what they are told, and for schedules that are
    /// due. Default: 1 second; at least a millisecond.
    pub fn poll(mut self, poll: Duration) -> Self {
        self.poll = poll.max(Duration::from_millis(1));
        self
    }

    /// Sets how long runs have to reach their next boundary when the worker shuts down. Default: 20 seconds.
    pub fn drain_within(mut self, time: Duration) -> Self {
        self.drain_within = time;
        self
    }

    /// Sets how often a run is tried again that failed for the moment or whose worker died, and after which time. Default: 4 more attempts, within seconds.
    /// A run that rested begins to count anew.
    pub fn attempts(mut self, backoff: Backoff) -> Self {
        self.backoff = backoff;
        self
    }

    /// Makes of each job's request what is run, such as with the tools that the job's [`extra`](Job::extra) tells of. It is asked each time that a run begins or
    /// goes on. An error gives the job up, unless it is temporary.
    pub fn shape(mut self, shape: impl Fn(&Job, RunRequest) -> Result<RunRequest> + Send + Sync + 'static) -> Self {
        self.shape = Arc::new(shape);
        self
    }

    /// Builds it.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) if there is no agent, one has no store, two have the same name, or a time is too short.
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
        })))
    }
}

impl fmt::Debug for WorkerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerBuilder").field("agents", &self.agents).field("name", &self.name).finish_non_exhaustive()
    }
}
