//! Ids of runs.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Ids of a run: its agent, the run itself, and its position in the tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RunIds {
    /// Name of the agent.
    pub agent: Arc<str>,
    /// Identifies the agent within the session; a resumed sub-agent keeps its id. The root agent's
    /// id is its name.
    pub agent_id: Arc<str>,
    /// Id of the run.
    pub run_id: Arc<str>,
    /// Id of the root run; equal to `run_id` for a root run.
    pub root_run_id: Arc<str>,
    /// Id of the parent run; `None` for a root run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_run_id: Option<Arc<str>>,
    /// Names of the agents from the root to this one, joined by `/`.
    pub path: Arc<str>,
    /// Name of the session.
    pub session: Arc<str>,
    /// Depth in the tree; 0 for a root run.
    pub depth: u32,
    /// User on whose behalf the agent runs, if set by
    /// [`RunRequest::on_behalf_of`](crate::RunRequest::on_behalf_of).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<Arc<str>>,
    /// Name of the worker that drives the run, if set by
    /// [`RunRequest::driven_by`](crate::RunRequest::driven_by). A run that was resumed by another
    /// worker has several: each start or resume entry of the journal names one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<Arc<str>>,
    /// W3C trace context of the caller, for a root run, if set by
    /// [`RunRequest::traceparent`](crate::RunRequest::traceparent).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<Arc<str>>,
}

impl RunIds {
    /// Creates the ids of a root run.
    pub fn root(agent: impl Into<Arc<str>>, session: impl Into<Arc<str>>) -> Self {
        let (agent, run_id) = (agent.into(), Arc::<str>::from(new_id()));
        Self {
            agent_id: agent.clone(),
            path: agent.clone(),
            agent,
            root_run_id: run_id.clone(),
            run_id,
            parent_run_id: None,
            session: session.into(),
            depth: 0,
            user: None,
            worker: None,
            traceparent: None,
        }
    }

    /// Creates the ids of a child run of `agent`. Without a `run_id`, a new one is generated;
    /// without an `agent_id`, the run id is used.
    #[must_use]
    pub fn child(&self, agent: impl Into<Arc<str>>, agent_id: Option<Arc<str>>, run_id: Option<Arc<str>>) -> Self {
        let agent = agent.into();
        let run_id = run_id.unwrap_or_else(|| new_id().into());
        Self {
            agent_id: agent_id.unwrap_or_else(|| run_id.clone()),
            path: format!("{}/{agent}", self.path).into(),
            agent,
            root_run_id: self.root_run_id.clone(),
            run_id,
            parent_run_id: Some(self.run_id.clone()),
            session: self.session.clone(),
            depth: self.depth + 1,
            user: self.user.clone(),
            worker: self.worker.clone(),
            traceparent: None,
        }
    }
}

/// Returns a new id: unique, and sorted by creation time.
pub fn new_id() -> String {
    uuid::Uuid::now_v7().simple().to_string()
}
