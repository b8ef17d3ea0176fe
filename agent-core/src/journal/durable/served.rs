//! Runs that are driven elsewhere for a run that waits for their ends.

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

/// A run of an agent that is served elsewhere, which another run has its engine drive there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ServedRun {
    /// The agent, by the name under which it is served.
    pub agent: Arc<str>,
    /// The engine's name of the service that has the agent. Default: that of the caller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<Arc<str>>,
    /// Its session. No run above it may be of that session, since it would wait for its own end.
    pub session: Arc<str>,
    /// Its id: two calls with one id are one run.
    pub run: Arc<str>,
    /// What it is told.
    pub messages: Vec<Message>,
    /// On whose behalf it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<Arc<str>>,
    /// What it may use. The caller's own caps do not hold there. Default: no limit of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caps: Option<Caps>,
    /// How long its end is waited for, by the engine's clock, whether there is a process meanwhile or not; then it is cancelled. Default: for ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Duration>,
    /// How deep runs may be called in this way below one another; the run is refused below as many. Default: 5.
    pub max_depth: u32,
}

/// How a run ended that was driven elsewhere.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ServedEnd {
    /// The final text; nothing if it did not finish.
    pub answer: String,
    /// Why it ended, or that it failed or was cancelled.
    pub reason: std::result::Result<ExitReason, KeptError>,
    /// What it used with all its sub-agents, however it ended.
    pub usage: Usage,
}

impl ServedRun {
    /// The run `run` of `agent` in `session`, on behalf of whom `caller` runs.
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
    /// An end with this answer.
    pub fn new(answer: impl Into<String>, reason: ExitReason, usage: Usage) -> Self {
        Self { answer: answer.into(), reason: Ok(reason), usage }
    }

    /// The end of a run that did not finish.
    pub fn failed(why: &Error, usage: Usage) -> Self {
        Self { answer: String::new(), reason: Err(KeptError::of(why)), usage }
    }
}
