//! Remote runs: runs of agents that other processes serve.

use std::{sync::Arc, time::Duration};

use serde::{Deserialize, Serialize};

use super::KeptError;
use crate::{
    amounts::Caps,
    error::Error,
    message::Message,
    state::{ExitReason, RunIds},
    usage::Usage,
};

/// Request for a run of a remote agent, which the caller's engine starts and awaits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ServedRun {
    /// Name under which the agent is served.
    pub agent: Arc<str>,
    /// The engine's name of the service that hosts the agent. Default: the caller's service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<Arc<str>>,
    /// Session of the run. No ancestor run may use the same session: it would wait for its own end.
    pub session: Arc<str>,
    /// Id of the run and idempotency key: two calls with the same id are one run.
    pub run: Arc<str>,
    /// Input messages.
    pub messages: Vec<Message>,
    /// User on whose behalf the agent runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<Arc<str>>,
    /// Caps on the run's usage. The caller's own caps do not apply to it. Default: no caps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caps: Option<Caps>,
    /// Maximum time to wait for the run's end, measured by the engine's clock, even while no
    /// process runs; then the run is cancelled. Default: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Duration>,
    /// Maximum nesting depth of remote runs; a deeper run is refused. Default: 5.
    pub max_depth: u32,
}

/// End of a remote run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ServedEnd {
    /// Final text; empty if the run did not finish.
    pub answer: String,
    /// Exit reason, or the error if the run failed or was cancelled.
    pub reason: std::result::Result<ExitReason, KeptError>,
    /// Usage of the run with all its sub-agents, for every kind of end.
    pub usage: Usage,
}

impl ServedRun {
    /// Creates a request for the run `run` of `agent` in `session`, on behalf of the caller's user.
    pub fn new(
        agent: impl Into<Arc<str>>,
        session: impl Into<Arc<str>>,
        run: impl Into<Arc<str>>,
        message: impl Into<String>,
        caller: &RunIds,
    ) -> Self {
        let (agent, session, run) = (agent.into(), session.into(), run.into());
        let (messages, user) = (vec![Message::user(message)], caller.user.clone());
        Self { agent, service: None, session, run, messages, user, caps: None, timeout: None, max_depth: 5 }
    }
}

impl ServedEnd {
    /// Creates the end of a finished run.
    pub fn new(answer: impl Into<String>, reason: ExitReason, usage: Usage) -> Self {
        Self { answer: answer.into(), reason: Ok(reason), usage }
    }

    /// Creates the end of a run that did not finish.
    pub fn failed(why: &Error, usage: Usage) -> Self {
        Self { answer: String::new(), reason: Err(KeptError::of(why)), usage }
    }
}
