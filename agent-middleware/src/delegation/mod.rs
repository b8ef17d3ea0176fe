//! Agents that call other agents.
//!
//! [`Delegation`] offers sub-agents to the model, and [`AskParent`] lets them ask back. This module
//! contains their configurations, for code that builds agents from files.
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

/// Offers other agents to the model: as one tool with the agent as a parameter, or as one tool per
/// agent.
///
/// An agent is identified by the **key** that it is registered under, whatever its own name; code
/// finds it under the same key with [`RunCx::call_sub_agent`]. Each call is a new run with its own
/// history and state; storage, session, budget, cancellation and events are the caller's.
///
/// The model sees the final text of the sub-agent; programs find `agent`, `id`, `run_id`, `answer`
/// and `reason` in the output's value. A sub-agent that stopped early says so in brackets. A
/// sub-agent that fails is a failed tool call whose text contains the id. A sub-agent that waits
/// for an answer suspends the call, which resumes when the answer arrives.
///
/// # Recalled, forked, in the background
///
/// With [`recall`](Self::recall), the model sees the id of each sub-agent. By passing the `id` of
/// an earlier call, it resumes that sub-agent with its knowledge so far: its history is read from
/// the session's journal. Only the agent that called it can resume it, also in later runs of a
/// stored session.
///
/// With [`fork`](Self::fork), the model may start a sub-agent with a copy of the conversation.
///
/// With [`background`](Self::background), the model may continue while a sub-agent runs. The call
/// then returns at once, and the result arrives as a message. The tools `delegate_status`,
/// `delegate_wait`, `delegate_steer` and `delegate_cancel` manage background sub-agents. The run
/// does not finish before them, unless [`wait_at_end`](DelegationConfig::wait_at_end) is false. If
/// the run is suspended, paused or cancelled, so are they, and they resume with it. Their questions
/// are asked when the run has nothing else to do, with the id of their run before the question's.
///
/// # Limits
///
/// Agents may be nested [`max_depth`](DelegationConfig::max_depth) deep. At most
/// [`max_concurrent`](DelegationConfig::max_concurrent) sub-agents of one run run concurrently;
/// their sub-agents have a limit of their own, so that no run waits for one above it. The total
/// usage of a tree is limited by the [`Budget`](agent_core::Budget).
///
/// # After a crash
///
/// The tool's effect is [`Reconcilable`](agent_core::Effect::Reconcilable): a sub-agent whose run
/// is in the journal resumes from there, and its own tools decide by their own effects. The same
/// holds for a background sub-agent whose end was not reported to the caller; if it was lost before
/// it began, the caller is notified of that.
///
/// # Order
///
/// It changes no calls, so its position among hooks does not matter; but middleware that should
/// apply to the sub-agents must be registered for all descendants.
///
/// ```text
/// // right: a person is asked about the helper's tools too
/// builder.middleware_for_all(Approval::new().ask("*")).middleware(Delegation::new().to("helper", "Helps.", helper))
/// // wrong: the model bypasses the approval through the helper
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
    /// Creates a delegation without agents, which offers no tool.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an agent under `key`. Duplicate keys are refused when the agent with this middleware is
    /// built.
    #[must_use]
    pub fn to<S>(self, key: impl Into<String>, description: impl Into<String>, agent: S) -> Self
    where
        S: Service<RunRequest, Response = RunEnd> + Clone + Send + Sync + 'static,
        S::Error: Into<BoxError>,
        S::Future: Send + 'static,
    {
        self.agent(SubAgent::new(key, description, agent))
    }

    /// As [`to`](Self::to), for an agent with further settings, such as its share of the caller's
    /// budget ([`SubAgent::with_caps`]).
    #[must_use]
    pub fn agent(mut self, agent: SubAgent) -> Self {
        self.agents.push(agent);
        self
    }

    /// Sets the name of the shared tool. Default: `delegate`.
    #[must_use]
    pub fn tool(mut self, name: impl Into<String>) -> Self {
        self.config.tool = name.into();
        self
    }

    /// Offers each agent as a separate tool, named by its key.
    #[must_use]
    pub fn one_tool_per_agent(mut self) -> Self {
        self.config.one_tool_per_agent = true;
        self
    }

    /// Shows the model the ids of its sub-agents, and lets it resume one that it called before.
    /// Otherwise each call starts a new one. (Ids are random, so that the prompts of two otherwise
    /// equal runs differ.)
    #[must_use]
    pub fn recall(mut self) -> Self {
        self.config.recall = true;
        self
    }

    /// Lets the model start a sub-agent with a copy of the conversation. This is most useful for
    /// agents with the same system prompt and tools: the prefix is in their provider's cache.
    #[must_use]
    pub fn fork(mut self) -> Self {
        self.config.fork = true;
        self
    }

    /// Lets the model continue while a sub-agent runs.
    #[must_use]
    pub fn background(mut self) -> Self {
        self.config.background = true;
        self
    }

    /// Sets the maximum nesting depth of agents. Default: 5.
    #[must_use]
    pub fn max_depth(mut self, depth: u32) -> Self {
        self.config.max_depth = depth;
        self
    }

    /// Sets the maximum number of concurrent sub-agents of one run; at least 1. Default: 5.
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

    /// Resumes the background sub-agents of an earlier attempt.
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
