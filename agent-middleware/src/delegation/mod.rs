//! [`Delegation`]: a model calls other agents.

mod config;
mod tool;

use std::sync::Arc;

use agent_core::{BoxError, Middleware, PerRun, Result, RunCx, RunEnd, RunRequest, SubAgent, Tool};
use async_trait::async_trait;
use tokio::sync::Semaphore;
use tower::Service;

pub use self::config::DelegationConfig;
use self::tool::{Delegate, Offer};

/// Offers other agents to the model: as one tool with the agent as a parameter, or as one tool per agent.
///
/// An agent is known by the **key** that it is registered under, whatever it calls itself; code finds it under the same key
/// with [`RunCx::call_sub_agent`]. Each call is a new run with a history and state of its own; storage, session, budget,
/// cancellation and events are the caller's.
///
/// The model sees the final text of the sub-agent and nothing else; programs find `agent`, `run_id`, `answer` and `reason`
/// in the output's value. A sub-agent that stopped before it was done says so in brackets. One that fails is a failed tool
/// call whose text names the run. One that waits for an answer suspends the call, and goes on when the answer is there.
///
/// # Limits
///
/// Agents may be nested [`max_depth`](DelegationConfig::max_depth) deep. Of one run at most
/// [`max_concurrent`](DelegationConfig::max_concurrent) sub-agents run at once; the runs below have as many of their own, so
/// that no run waits for one above it. What a tree may use altogether is a matter of the [`Budget`](agent_core::Budget).
///
/// # After a crash
///
/// The tool's effect is [`Reconcilable`](agent_core::Effect::Reconcilable): a sub-agent whose run the journal knows goes on
/// where it stood, and its own tools decide by their own effects.
///
/// # Order
///
/// It only contributes tools, so its place among hooks does not matter; but what should hold for the sub-agents must be
/// said to cover them.
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
    running: Arc<PerRun<Semaphore>>,
}

impl Delegation {
    /// No agents yet: no tool either.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an agent under `key`. Two agents with one key are refused when the agent that has this middleware is built.
    #[must_use]
    pub fn to<S>(mut self, key: impl Into<String>, description: impl Into<String>, agent: S) -> Self
    where
        S: Service<RunRequest, Response = RunEnd> + Clone + Send + Sync + 'static,
        S::Error: Into<BoxError>,
        S::Future: Send + 'static,
    {
        self.agents.push(SubAgent::new(key, description, agent));
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
        let (config, running) = (self.config.clone(), self.running.clone());
        let offer = Arc::new(Offer { config, running, agents: self.agents.iter().cloned().collect() });
        match self.agents.as_slice() {
            [] => Vec::new(),
            all if self.config.one_tool_per_agent => {
                all.iter().map(|agent| Arc::new(Delegate::one(agent, offer.clone())) as Arc<dyn Tool>).collect()
            }
            all => vec![Arc::new(Delegate::any(all, offer))],
        }
    }

    fn sub_agents(&self) -> Vec<SubAgent> {
        self.agents.clone()
    }

    async fn after_agent(&self, cx: &RunCx, _: &mut Result<RunEnd>) -> Result<()> {
        self.running.end(cx);
        Ok(())
    }
}
