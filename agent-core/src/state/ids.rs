//! Who runs.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Who runs: names the agent, the run and its place in the tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RunIds {
    /// The agent's name.
    pub agent: Arc<str>,
    /// Tells agents of one session apart; a recalled sub-agent keeps it. The root agent's is its name.
    pub agent_id: Arc<str>,
    /// The run.
    pub run_id: Arc<str>,
    /// The run at the top of the tree; this run itself there.
    pub root_run_id: Arc<str>,
    /// The run above; none at the top.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_run_id: Option<Arc<str>>,
    /// The names of the agents from the top to this one, joined by `/`.
    pub path: Arc<str>,
    /// The session.
    pub session: Arc<str>,
    /// 0 at the top.
    pub depth: u32,
    /// On whose behalf the agent runs, if it was said: [`RunRequest::on_behalf_of`](crate::RunRequest::on_behalf_of).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<Arc<str>>,
    /// The worker that drives it, by its name, if a worker does: [`RunRequest::driven_by`](crate::RunRequest::driven_by). A run that went on with
    /// another has several, one in each entry of its journal that says that it begins or goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<Arc<str>>,
    /// The W3C trace context of whoever asked for it, at the top of a tree, if it was said: [`RunRequest::traceparent`](crate::RunRequest::traceparent).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<Arc<str>>,
}

impl RunIds {
    /// A run at the top of a tree.
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

    /// A child run of `agent`.
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

/// A new id: unique, and sorting by the time it was made.
pub fn new_id() -> String {
    uuid::Uuid::now_v7().simple().to_string()
}
