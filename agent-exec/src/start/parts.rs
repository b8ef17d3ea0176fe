//! What the runs of an agent share.

use std::sync::Arc;

use agent_core::{
    Budget, Checkpoint, GlobalStorage, Journal, Resources, Result, StateSchema, WhenBusy, WhenWaiting,
    middleware::Middlewares, run::SubAgents,
};

use super::SessionLocks;
use crate::{drain::Drain, executor::Executor, lifecycle::Lifecycle, prompts::Prompts};

/// Brings a checkpoint of another agent into the form of this one.
pub(crate) type Migration = Arc<dyn Fn(&mut Checkpoint) -> Result<()> + Send + Sync>;

/// What the runs of an agent share.
pub(crate) struct AgentParts {
    pub(crate) name: Arc<str>,
    pub(crate) executor: Executor,
    pub(crate) prompts: Prompts,
    pub(crate) lifecycle: Lifecycle,
    pub(crate) for_descendants: Middlewares,
    pub(crate) sub_agents: SubAgents,
    pub(crate) stream: bool,
    pub(crate) schema: StateSchema,
    /// If the application gave it: it then wins over what a session kept.
    pub(crate) globals: Option<GlobalStorage>,
    pub(crate) resources: Resources,
    pub(crate) budget: Budget,
    pub(crate) drain: Option<Drain>,
    pub(crate) journal: Option<Arc<dyn Journal>>,
    /// Of a run without a store.
    pub(crate) entries_kept: usize,
    pub(crate) when_busy: WhenBusy,
    pub(crate) when_waiting: WhenWaiting,
    pub(crate) locks: SessionLocks,
    pub(crate) migration: Option<Migration>,
    pub(crate) fingerprint: String,
}
