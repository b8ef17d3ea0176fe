//! Agents that call other agents.
//!
//! [`Delegation`] offers them to the model, and [`AskParent`] lets them ask back. Here are their configurations, for those who set
//! agents up from files.
//!
//! ```
//! use agent_middleware::{Delegation, delegation::DelegationConfig};
//!
//! let config: DelegationConfig = serde_json::from_str("{}")?;
//! let delegation = Delegation::from(config);
//! # drop(delegation);
//! # Ok::<(), serde_json::Error>(())
//! ```

mod ask_parent;
mod child;
mod config;
mod family;
mod manage;
mod text;
mod tool;

use std::sync::Arc;

use agent_core::{
    BoxError, Exit, Message, Middleware, PerRun, Result, RunCx, RunEnd, RunRequest, SubAgent, Tool, Verdict,
    engine::SubRuns,
};
use async_trait::async_trait;
use tower::Service;

pub use self::{
    ask_parent::{AskParent, AskParentConfig},
    config::DelegationConfig,
};
use self::{
    family::Family,
    manage::Manage,
    tool::{Delegate, Offer},
};

/// Offers other agents to the model: as one tool with the agent as a parameter, or as one tool per agent.
///
/// An agent is known by the **key** that it is registered under, whatever it calls itself; code finds it under the same key
/// with [`RunCx::call_sub_agent`]. Each call is a new run with a history and state of its own; storage, session, budget,
/// cancellation and events are the caller's.
///
/// The model sees the final text of the sub-agent; programs find `agent`, `id`, `run_id`, `answer` and `reason` in the output's
/// value. A sub-agent that stopped before it was done says so in brackets. One that fails is a failed tool call whose text has
/// the id. One that waits for an answer suspends the call, and goes on when the answer is there.
///
/// # Recalled, forked, in the background
///
/// With [`recall`](Self::recall) the model is told the id of each sub-agent. With the `id` of an earlier call it goes on with
/// that one, which knows what it did so far: its history is read from the session's journal. Only an agent that called it can recall it, also in later runs of a session that is kept.
///
/// With [`fork`](Self::fork) the model may let a sub-agent begin with a copy of the conversation.
///
/// With [`background`](Self::background) it may go on while a sub-agent runs. The call then returns at once, and the end comes
/// as a message. The tools `delegate_status`, `delegate_wait`, `delegate_steer` and `delegate_cancel` look after sub-agents in
/// the background. The run does not finish before them, unless [`wait_at_end`](DelegationConfig::wait_at_end) says otherwise. If
/// it is suspended, paused or cancelled, so are they, and they go on with it. What they ask comes up when the run has nothing
/// else to do, with the id of their run before the question's.
///
/// # Limits
///
/// Agents may be nested [`max_depth`](DelegationConfig::max_depth) deep. Of one run at most
/// [`max_concurrent`](DelegationConfig::max_concurrent) sub-agents run at once; their sub-agents have as many of their own, so
/// that no run waits for one above it. What a tree may use altogether is a matter of the [`Budget`](agent_core::Budget).
///
/// # After a crash
///
/// The tool's effect is [`Reconcilable`](agent_core::Effect::Reconcilable): a sub-agent whose run the journal knows goes on
/// where it stood, and its own tools decide by their own effects. So does one in the background of whose end the caller was
/// not told; of one that was lost before it began the caller is told that.
///
/// # Order
///
/// It changes no calls, so its place among hooks does not matter; but what should hold for the sub-agents must be said to
/// cover them.
///
/// ```text
/// // right: a person is asked about the helper's tools too
/// builder.middleware_for_all(Approval::new().ask("*")).middleware(Delegation::new().to("helper", "Helps.", helper))
/// // wrong: the model gets around the approval by asking the helper
/// builder.middleware(Approval::new().ask("*")).middleware(Delegation::new().to("helper", "Helps.", helper))
/// ```
///
/// # Example
///
/// ```
/// use agent_core::{ExitReason, Finished, History, Middleware, RunEnd, RunIds, RunRequest};
/// use agent_middleware::Delegation;
/// use tower::service_fn;
///
/// // Any service from a run's request to its end is an agent: a local one, one with layers, a remote one.
/// let researcher = service_fn(|_: RunRequest| async {
///     let ids = RunIds::root("r", "s");
///     let finished = Finished::new(ids, "It is 42.", ExitReason::Text, History::default());
///     Ok::<_, agent_core::Error>(RunEnd::Finished(Box::new(finished)))
/// });
/// let delegation = Delegation::new().to("researcher", "Finds things out.", researcher).max_concurrent(3);
/// assert_eq!(delegation.tools()[0].spec().name, "delegate");
/// assert_eq!(delegation.sub_agents()[0].key, "researcher");
/// ```
#[derive(Debug, Default)]
pub struct Delegation {
    config: DelegationConfig,
    agents: Vec<SubAgent>,
    running: Arc<PerRun<Family>>,
}

impl Delegation {
    /// No agents yet: no tool either.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an agent under `key`. Two agents with one key are refused when the agent that has this middleware is built.
    #[must_use]
    pub fn to<S>(self, key: impl Into<String>, description: impl Into<String>, agent: S) -> Self
    where
        S: Service<RunRequest, Response = RunEnd> + Clone + Send + Sync + 'static,
        S::Error: Into<BoxError>,
        S::Future: Send + 'static,
    {
        self.agent(SubAgent::new(key, description, agent))
    }

    /// As [`to`](Self::to), for an agent of which more is said: such as its share of the caller's budget
    /// ([`SubAgent::with_caps`]).
    #[must_use]
    pub fn agent(mut self, agent: SubAgent) -> Self {
        self.agents.push(agent);
        self
    }

    /// Sets the name of the one tool. Default: `delegate`.
    #[must_use]
    pub fn tool(mut self, name: impl Into<String>) -> Self {
        self.config.tool = name.into();
        self
    }

    /// Offers each agent as a tool of its own, named by its key.
    #[must_use]
    pub fn one_tool_per_agent(mut self) -> Self {
        self.config.one_tool_per_agent = true;
        self
    }

    /// Tells the model the ids of its sub-agents, and lets it go on with one that it called before. Without, each call is a
    /// new one. (An id is another one each time, so that two runs that do the same are not told the same.)
    #[must_use]
    pub fn recall(mut self) -> Self {
        self.config.recall = true;
        self
    }

    /// Lets the model begin a sub-agent with a copy of the conversation. That makes sense for agents with the same system
    /// prompt and tools above all: their providers have the beginning in their caches.
    #[must_use]
    pub fn fork(mut self) -> Self {
        self.config.fork = true;
        self
    }

    /// Lets the model go on while a sub-agent runs.
    #[must_use]
    pub fn background(mut self) -> Self {
        self.config.background = true;
        self
    }

    /// Sets how deep agents may be nested. Default: 5.
    #[must_use]
    pub fn max_depth(mut self, depth: u32) -> Self {
        self.config.max_depth = depth;
        self
    }

    /// Sets the most sub-agents that one run has at once; at least 1. Default: 5.
    #[must_use]
    pub fn max_concurrent(mut self, most: usize) -> Self {
        self.config.max_concurrent = Some(most);
        self
    }
}

impl From<DelegationConfig> for Delegation {
    fn from(config: DelegationConfig) -> Self {
        Self { config, ..Self::default() }
    }
}

#[async_trait]
impl Middleware for Delegation {
    fn name(&self) -> &str {
        "delegation"
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let agents = self.agents.iter().cloned().collect();
        let offer = Arc::new(Offer { config: self.config.clone(), families: self.running.clone(), agents });
        let mut tools: Vec<Arc<dyn Tool>> = match self.agents.as_slice() {
            [] => return Vec::new(),
            all if self.config.one_tool_per_agent => {
                all.iter().map(|agent| Arc::new(Delegate::one(agent, offer.clone())) as _).collect()
            }
            all => vec![Arc::new(Delegate::any(all, offer.clone()))],
        };
        if self.config.background {
            tools.extend(Manage::all(&offer));
        }
        tools
    }

    fn sub_agents(&self) -> Vec<SubAgent> {
        self.agents.clone()
    }

    /// Goes on with what ran in the background when an earlier attempt stopped.
    async fn before_agent(&self, cx: &RunCx) -> Result<()> {
        for mut background in
            SubRuns::of(cx).take_background(|run| self.agents.iter().any(|agent| agent.key == run.key))
        {
            match background.checkpoint.take() {
                Some(checkpoint) => {
                    let run = SubRuns::of(cx).resume(&background, *checkpoint)?;
                    let family = self.running.of(cx, || Family::new(&self.config));
                    family.start(cx, run, None, self.config.recall)?;
                }
                None => SubRuns::of(cx).report(&background.run, Some(Message::user(text::lost(&background.key))))?,
            }
        }
        Ok(())
    }

    async fn on_exit(&self, cx: &RunCx, _: &mut Exit) -> Result<Verdict> {
        match self.running.get(cx) {
            Some(family) if self.config.wait_at_end => family.before_exit(cx).await,
            _ => Ok(Verdict::Proceed),
        }
    }

    async fn after_agent(&self, cx: &RunCx, end: &mut Result<RunEnd>) -> Result<()> {
        if let Some(family) = self.running.end(cx) {
            family.stop(cx, end).await;
        }
        Ok(())
    }
}
