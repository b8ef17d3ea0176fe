//! Parts that all runs of an agent share.

use std::sync::Arc;

use agent_core::{
    Budget, Checkpoint, GlobalStorage, Journal, Resources, Result, StateSchema, WhenBusy, WhenWaiting,
    middleware::Middlewares, run::SubAgents,
};

use super::SessionLocks;
use crate::{drain::Drain, executor::Executor, lifecycle::Lifecycle, prompts::Prompts};

/// Migrates a checkpoint of another agent to this one.
pub(crate) type Migration = Arc<dyn Fn(&mut Checkpoint) -> Result<()> + Send + Sync>;

/// Parts that all runs of an agent share.
pub(crate) struct AgentParts {
    pub(crate) name: Arc<str>,
    pub(crate) executor: Executor,
    pub(crate) prompts: Prompts,
    pub(crate) lifecycle: Lifecycle,
    pub(crate) for_descendants: Middlewares,
    pub(crate) sub_agents: SubAgents,
    pub(crate) stream: bool,
    pub(crate) schema: StateSchema,
    /// Set by the application; takes precedence over the globals stored with a session.
    pub(crate) globals: Option<GlobalStorage>,
    pub(crate) resources: Resources,
    pub(crate) budget: Budget,
    pub(crate) drain: Option<Drain>,
    pub(crate) journal: Option<Arc<dyn Journal>>,
    /// Limit for runs without a store.
    pub(crate) entries_kept: usize,
    pub(crate) when_busy: WhenBusy,
    pub(crate) when_waiting: WhenWaiting,
    pub(crate) locks: SessionLocks,
    pub(crate) migration: Option<Migration>,
    pub(crate) fingerprint: String,
}
