//! Agents that an agent may call.

use std::{collections::BTreeMap, sync::Arc};

use tower::Service;

use super::RunRequest;
use crate::{
    amounts::Caps,
    error::{BoxError, Error, ErrorKind, Result},
    service::SharedService,
    state::RunEnd,
};

/// An agent, local or remote, including the layers around it.
pub type AgentService = SharedService<RunRequest, RunEnd>;

/// An agent that another agent may call, under a key.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SubAgent {
    /// Key under which it is called, regardless of the agent's name.
    pub key: String,
    /// Purpose of the agent, for the model.
    pub description: String,
    /// The agent: local, layered or remote.
    pub service: AgentService,
    /// Caps on each of its runs, within its caller's budget. Default: none.
    pub caps: Option<Caps>,
}

impl SubAgent {
    /// Creates a sub-agent under `key`.
    pub fn new<S>(key: impl Into<String>, description: impl Into<String>, agent: S) -> Self
    where
        S: Service<RunRequest, Response = RunEnd> + Clone + Send + Sync + 'static,
        S::Error: Into<BoxError>,
        S::Future: Send + 'static,
    {
        Self { key: key.into(), description: description.into(), service: AgentService::new(agent), caps: None }
    }

    /// Sets the caps on each of its runs, within what is left of its caller's budget.
    #[must_use]
    pub fn with_caps(mut self, caps: Caps) -> Self {
        self.caps = Some(caps);
        self
    }
}

/// The agents that an agent may call, by key.
#[derive(Clone, Debug, Default)]
pub struct SubAgents(Arc<BTreeMap<String, SubAgent>>);

impl SubAgents {
    /// Returns the agent under `key`.
    ///
    /// # Errors
    /// [`ErrorKind::SubAgentNotFound`], with the available keys.
    pub fn get(&self, key: &str) -> Result<&SubAgent> {
        self.0.get(key).ok_or_else(|| {
            let keys: Vec<_> = self.0.keys().map(String::as_str).collect();
            let keys = if keys.is_empty() { "none".into() } else { keys.join(", ") };
            Error::new(
                ErrorKind::SubAgentNotFound,
                format!("Sub-agent '{key}' not found. Available sub-agents: {keys}"),
            )
        })
    }

    /// All agents, by key.
    pub fn iter(&self) -> impl Iterator<Item = &SubAgent> {
        self.0.values()
    }
}

impl FromIterator<SubAgent> for SubAgents {
    fn from_iter<I: IntoIterator<Item = SubAgent>>(agents: I) -> Self {
        Self(Arc::new(agents.into_iter().map(|a| (a.key.clone(), a)).collect()))
    }
}
