//! Agents that an agent may call.

use std::{collections::BTreeMap, sync::Arc};

use tower::Service;

use super::{Finished, Parent, RunCx, RunEnd, RunInput, RunRequest, new_id};
use crate::{AgentService, BoxError, EntryBody, Error, ErrorKind, Message, Result, ToolRequest};

/// An agent that another may call, under a key.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SubAgent {
    /// The name to use, whatever the agent calls itself.
    pub key: String,
    /// What it is good for.
    pub description: String,
    /// The agent: local, layered or remote.
    pub service: AgentService,
}

impl SubAgent {
    /// An agent under `key`.
    pub fn new<S>(key: impl Into<String>, description: impl Into<String>, agent: S) -> Self
    where
        S: Service<RunRequest, Response = RunEnd> + Clone + Send + Sync + 'static,
        S::Error: Into<BoxError>,
        S::Future: Send + 'static,
    {
        Self { key: key.into(), description: description.into(), service: AgentService::new(agent) }
    }
}

/// The agents that an agent may call, by key.
#[derive(Clone, Debug, Default)]
pub struct SubAgents(Arc<BTreeMap<String, SubAgent>>);

impl SubAgents {
    /// The agent under `key`.
    ///
    /// # Errors
    /// [`ErrorKind::SubAgentNotFound`], with the keys that there are.
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

    /// All of them, by key.
    pub fn iter(&self) -> impl Iterator<Item = &SubAgent> {
        self.0.values()
    }
}

impl FromIterator<SubAgent> for SubAgents {
    fn from_iter<I: IntoIterator<Item = SubAgent>>(agents: I) -> Self {
        Self(Arc::new(agents.into_iter().map(|a| (a.key.clone(), a)).collect()))
    }
}

impl RunCx {
    /// Runs the sub-agent under `key` on a fresh history and waits for it.
    ///
    /// It shares the storage, the session, the budget, cancellation and events; history and state are its own. In a tool,
    /// use [`ToolRequest::call_sub_agent`], which can also go on with a sub-agent that had to wait.
    ///
    /// # Errors
    /// [`ErrorKind::SubAgentNotFound`]; those of the sub-agent; [`ErrorKind::Interrupted`] with its checkpoint if it waits.
    pub async fn call_sub_agent(&self, key: &str, message: impl Into<String>) -> Result<Finished> {
        let agent = self.sub_agents().get(key)?.clone();
        run(self, &agent, None, RunInput::Messages(vec![Message::user(message)])).await
    }
}

impl ToolRequest {
    /// Runs the sub-agent under `key` as this call, or goes on with it if this call is gone on with.
    ///
    /// # Errors
    /// As [`RunCx::call_sub_agent`].
    pub async fn call_sub_agent(&self, key: &str, message: impl Into<String>) -> Result<Finished> {
        let agent = self.cx.sub_agents().get(key)?.clone();
        let call_id: Arc<str> = self.call.id.clone();
        let input = match &self.child {
            Some(checkpoint) => {
                let answers = self.cx.answers_below(&call_id);
                RunInput::Resume { checkpoint: Box::new((**checkpoint).clone()), answers }
            }
            None => RunInput::Messages(vec![Message::user(message)]),
        };
        run(&self.cx, &agent, Some(call_id), input).await
    }
}

async fn run(cx: &RunCx, agent: &SubAgent, call_id: Option<Arc<str>>, input: RunInput) -> Result<Finished> {
    let mut request = RunRequest::new(Vec::new()).below(Parent::new(cx.clone(), call_id.clone()));
    let place = call_id.unwrap_or_else(|| agent.key.as_str().into());
    if matches!(input, RunInput::Messages(_)) {
        let run: Arc<str> = new_id().into();
        cx.log().record(EntryBody::SubAgentLinked { call_id: place.clone(), key: agent.key.clone(), run: run.clone() });
        cx.log().commit().await?;
        request.run_id = Some(run);
    }
    request.input = input;
    match agent.service.run(request).await? {
        RunEnd::Finished(finished) => Ok(*finished),
        RunEnd::Interrupted(child) | RunEnd::Paused(child) => {
            cx.waits_for(&place, &child);
            Err(Error::suspended(&place, *child))
        }
        RunEnd::Cancelled(child) => {
            Err(Error::new(ErrorKind::Cancelled, "the sub-agent was cancelled").with_checkpoint(*child))
        }
    }
}
