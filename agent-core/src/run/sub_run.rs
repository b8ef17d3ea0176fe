//! A sub-agent's run, from its call to its end.

use std::sync::Arc;

use crate::cx::RunCx;
use crate::request::{AgentService, RunRequest, SubRunHandle};
use crate::state::{Finished, RunEnd};
use crate::{
    error::{Error, ErrorKind, Result},
    message::Message,
};

/// How a sub-agent is called: anew, recalled by its id, or with a copy of the caller's conversation; in the background or
/// waited for.
///
/// ```
/// use agent_core::engine::SubAgentCall;
///
/// let call = SubAgentCall::new("researcher", "And in 1990?").recall("0198d0");
/// assert_eq!(call.recall.as_deref(), Some("0198d0"));
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SubAgentCall {
    /// The sub-agent's key.
    pub key: String,
    /// What it is told.
    pub message: Message,
    /// The id of the sub-agent that is to go on with what it knows; a new one if unset.
    pub recall: Option<Arc<str>>,
    /// Whether it begins with a copy of the caller's conversation. Default: false.
    pub fork: bool,
    /// Whether the caller goes on meanwhile. Default: false.
    pub background: bool,
}

impl SubAgentCall {
    /// A call of a new sub-agent under `key`.
    pub fn new(key: impl Into<String>, message: impl Into<String>) -> Self {
        let message = Message::user(message);
        Self { key: key.into(), message, recall: None, fork: false, background: false }
    }

    /// Calls the sub-agent that has this id, with all that it knows.
    #[must_use]
    pub fn recall(mut self, id: impl Into<Arc<str>>) -> Self {
        self.recall = Some(id.into());
        self
    }

    /// Begins with a copy of the caller's conversation.
    #[must_use]
    pub fn fork(mut self) -> Self {
        self.fork = true;
        self
    }
}

/// A sub-agent's run that the journal knows and that has not begun: [`run`](Self::run) drives it.
#[derive(Debug)]
pub struct SubRun {
    pub(super) cx: RunCx,
    pub(super) key: String,
    /// The call that started it, or else the key.
    pub(super) place: Arc<str>,
    pub(super) agent_id: Arc<str>,
    pub(super) run_id: Arc<str>,
    pub(super) handle: SubRunHandle,
    pub(super) service: AgentService,
    pub(super) request: RunRequest,
    pub(super) _at_work: AtWork,
}

impl SubRun {
    /// The sub-agent's key.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The id to recall the sub-agent by.
    pub fn id(&self) -> &Arc<str> {
        &self.agent_id
    }

    /// The run.
    pub fn run_id(&self) -> &Arc<str> {
        &self.run_id
    }

    /// What steers it.
    pub fn handle(&self) -> &SubRunHandle {
        &self.handle
    }

    /// Drives it to its end.
    ///
    /// # Errors
    /// Those of the sub-agent.
    pub async fn run(self) -> Result<RunEnd> {
        let log = &self.cx.0.log;
        let end = log.run_step(&self.key, &self.run_id, self.service.run(self.request)).await;
        let stands = match &end {
            Ok(end) => end.checkpoint(),
            Err(e) => e.checkpoint(),
        };
        if let Some(stands) = stands.filter(|stands| stands.ids.run_id == self.run_id) {
            log.import_child(stands);
        }
        end
    }

    /// Drives it to its end for a caller that waits. If it has to wait for an answer, so has the caller.
    ///
    /// # Errors
    /// Those of the sub-agent; [`ErrorKind::Interrupted`] with its checkpoint if it waits.
    pub async fn finish(self) -> Result<Finished> {
        let (cx, place) = (self.cx.clone(), self.place.clone());
        match self.run().await? {
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
}

/// Holds a sub-agent's id while its run is ready or under way: two runs at once would write one conversation.
#[derive(Debug)]
pub(super) struct AtWork {
    cx: RunCx,
    id: Arc<str>,
}

impl AtWork {
    pub(super) fn begin(cx: &RunCx, id: &Arc<str>) -> Result<Self> {
        let mut pending = cx.pending();
        if pending.at_work.contains(id) {
            return Err(Error::tool(format!(
                "Sub-agent {id} is at work already: wait for its end, or call a new one."
            )));
        }
        pending.at_work.push(id.clone());
        Ok(Self { cx: cx.clone(), id: id.clone() })
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        self.cx.pending().at_work.retain(|id| *id != self.id);
    }
}
