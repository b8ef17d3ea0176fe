//! Agents that an agent may call.

use std::{
    collections::BTreeMap,
    sync::{Arc, atomic::Ordering},
};

use tower::Service;

use super::{Finished, Parent, RunCx, RunEnd, RunInput, RunRequest, new_id};
use crate::{AgentService, BoxError, Caps, EntryBody, Error, ErrorKind, Message, Result, ToolRequest};

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
    /// The share of its caller's budget that each of its runs may use; all of it if unset.
    pub caps: Option<Caps>,
}

impl SubAgent {
    /// An agent under `key`.
    pub fn new<S>(key: impl Into<String>, description: impl Into<String>, agent: S) -> Self
    where
        S: Service<RunRequest, Response = RunEnd> + Clone + Send + Sync + 'static,
        S::Error: Into<BoxError>,
        S::Future: Send + 'static,
    {
        Self { key: key.into(), description: description.into(), service: AgentService::new(agent), caps: None }
    }

    /// Gives each of its runs a share of its caller's budget: it may use so much, and no more than the caller has left.
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

/// Counts a sub-agent that is to be started, if the budget's caps on depth and fan-out allow it.
fn may_start(cx: &RunCx, key: &str) -> Result<()> {
    let (caps, started) = (cx.budget().run_caps(), &cx.0.started);
    let refuse = |what, cap, why| {
        let message = format!("Sub-agent '{key}' was not started: {why} {cap}. Do the task yourself.");
        Err(Error::new(ErrorKind::Limit, message).with_context("budget", what))
    };
    if let Some(cap) = caps.depth.filter(|cap| cx.ids().depth >= *cap) {
        return refuse("depth", cap, "the budget's cap on the depth of agents below agents is");
    }
    let fits = |started: u32| (caps.fan_out.is_none_or(|cap| started < cap)).then(|| started.saturating_add(1));
    match (started.fetch_update(Ordering::AcqRel, Ordering::Acquire, fits), caps.fan_out) {
        (Err(_), Some(cap)) => refuse("fan-out", cap, "the budget's cap on the sub-agents of one run is"),
        _ => Ok(()),
    }
}

async fn run(cx: &RunCx, agent: &SubAgent, call_id: Option<Arc<str>>, input: RunInput) -> Result<Finished> {
    let mut request = RunRequest::new(Vec::new()).below(Parent::new(cx.clone(), call_id.clone()));
    let place = call_id.unwrap_or_else(|| agent.key.as_str().into());
    request.caps = agent.caps;
    if matches!(input, RunInput::Messages(_)) {
        may_start(cx, &agent.key)?;
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
