//! [`HandoffsBuilder`]: the agents of a group, and what each sees of a conversation.

use std::{collections::BTreeMap, fmt, sync::Arc};

use agent_core::{Error, History, Result, Tool};

use super::{
    Handoffs, Parts,
    filter::HistoryFilter,
    transfer::{Transfer, TransferRules},
};
use crate::Agent;

/// An agent that conversations can be transferred to.
#[derive(Clone)]
pub struct Handoff {
    agent: Agent,
    description: String,
    filter: Option<HistoryFilter>,
}

impl Handoff {
    /// Describes `agent` for the models that decide about a transfer: what it is responsible for.
    pub fn to(agent: Agent, description: impl Into<String>) -> Self {
        Self { agent, description: description.into(), filter: None }
    }

    /// Sets what the agent's model sees of the conversation before the transfer, such as
    /// [`without_tools`](super::without_tools). The stored history does not change. Default: all.
    #[must_use]
    pub fn filter(mut self, filter: impl Fn(&History) -> Result<History> + Send + Sync + 'static) -> Self {
        self.filter = Some(Arc::new(filter));
        self
    }
}

/// Configures and builds [`Handoffs`].
#[derive(Clone)]
#[must_use]
pub struct HandoffsBuilder {
    first: Handoff,
    others: Vec<Handoff>,
    max_handoffs: u32,
}

impl HandoffsBuilder {
    pub(super) fn new(first: Agent) -> Self {
        Self { first: Handoff::to(first, ""), others: Vec::new(), max_handoffs: 8 }
    }

    /// Adds an agent that every other agent can transfer to.
    pub fn agent(mut self, handoff: Handoff) -> Self {
        self.others.push(handoff);
        self
    }

    /// Lets the other agents transfer a conversation back to the first one, and describes it for them.
    /// Default: they cannot.
    pub fn back_to_first(mut self, description: impl Into<String>) -> Self {
        self.first.description = description.into();
        self
    }

    /// Sets how many transfers one message may cause. Default: 8.
    pub fn max_handoffs(mut self, most: u32) -> Self {
        self.max_handoffs = most;
        self
    }

    /// Builds the group: adds the transfer tools to each agent and gives all of them the store of the
    /// first.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) if the first agent has no store, there is
    /// no other agent, two agents have one name, a name cannot be part of a tool name, or an agent has
    /// a tool of the same name.
    pub fn build(self) -> Result<Handoffs> {
        let store = self.first.agent.store().cloned();
        let journal = store.ok_or_else(|| {
            Error::config("the first agent has no store, in which the agents share a conversation: add store(..)")
        })?;
        if self.others.is_empty() {
            return Err(Error::config("there is no agent to hand a conversation over to: add agent(..)"));
        }
        if self.max_handoffs == 0 {
            return Err(Error::config("max_handoffs is 0: no conversation could be handed over"));
        }
        let first: Arc<str> = self.first.agent.name().into();
        let members: Vec<&Handoff> = std::iter::once(&self.first).chain(&self.others).collect();
        let mut agents = BTreeMap::new();
        for member in &members {
            let targets = members.iter().filter(|to| to.agent.name() != member.agent.name());
            let targets = targets.filter(|to| !to.description.is_empty());
            let tools: Vec<Arc<dyn Tool>> = targets
                .map(|to| Ok(Arc::new(Transfer::new(to.agent.name(), &to.description)?) as Arc<dyn Tool>))
                .collect::<Result<_>>()?;
            let names: Vec<String> = tools.iter().map(|tool| tool.spec().name).collect();
            let rules = TransferRules::new(member.agent.name(), member.filter.clone());
            let mut builder = member.agent.to_builder().store(journal.clone()).tools(tools).middleware(rules);
            if !names.is_empty() {
                builder = builder.exit_on(names);
            }
            if agents.insert(Arc::from(member.agent.name()), builder.build()?).is_some() {
                return Err(Error::config(format!("two agents of the group are named '{}'", member.agent.name())));
            }
        }
        Ok(Handoffs { parts: Arc::new(Parts { agents, first, journal, max_handoffs: self.max_handoffs }) })
    }
}

impl fmt::Debug for Handoff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handoff").field("agent", &self.agent.name()).finish_non_exhaustive()
    }
}

impl fmt::Debug for HandoffsBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HandoffsBuilder")
            .field("first", &self.first)
            .field("others", &self.others)
            .finish_non_exhaustive()
    }
}
