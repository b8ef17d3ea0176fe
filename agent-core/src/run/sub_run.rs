//! Runs of sub-agents.

use std::sync::Arc;

use crate::cx::RunCx;
use crate::request::{AgentService, RunRequest, SubRunHandle};
use crate::state::{Finished, RunEnd};
use crate::{
    error::{Error, ErrorKind, Result},
    message::Message,
};

/// Call of a sub-agent: a new one, one resumed by its id, or one with a copy of the caller's
/// conversation; in the foreground or background.
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
    /// Key of the sub-agent.
    pub key: String,
    /// Input message.
    pub message: Message,
    /// Id of the sub-agent to resume with its conversation. Default: a new sub-agent.
    pub recall: Option<Arc<str>>,
    /// True if the sub-agent starts with a copy of the caller's conversation. Default: false.
    pub fork: bool,
    /// True if the caller does not wait for the sub-agent. Default: false.
    pub background: bool,
}

impl SubAgentCall {
    /// Creates a call of a new sub-agent under `key`.
    pub fn new(key: impl Into<String>, message: impl Into<String>) -> Self {
        let message = Message::user(message);
        Self { key: key.into(), message, recall: None, fork: false, background: false }
    }

    /// Resumes the sub-agent with this id, including its conversation.
    #[must_use]
    pub fn recall(mut self, id: impl Into<Arc<str>>) -> Self {
        self.recall = Some(id.into());
        self
    }

    /// Starts with a copy of the caller's conversation.
    #[must_use]
    pub fn fork(mut self) -> Self {
        self.fork = true;
        self
    }
}

/// A sub-agent's run that is linked in the journal and has not begun: [`run`](Self::run) drives it.
#[derive(Debug)]
pub struct SubRun {
    pub(super) cx: RunCx,
    pub(super) key: String,
    /// Prefix of its questions' ids.
    pub(super) place: Arc<str>,
    pub(super) agent_id: Arc<str>,
    pub(super) run_id: Arc<str>,
    pub(super) handle: SubRunHandle,
    pub(super) service: AgentService,
    pub(super) request: RunRequest,
    pub(super) _at_work: AtWork,
}

impl SubRun {
    /// Key of the sub-agent.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Id with which the sub-agent can be resumed.
    pub fn id(&self) -> &Arc<str> {
        &self.agent_id
    }

    /// Id of the run.
    pub fn run_id(&self) -> &Arc<str> {
        &self.run_id
    }

    /// Handle that steers the run.
    pub fn handle(&self) -> &SubRunHandle {
        &self.handle
    }

    /// Drives the run to its end.
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

    /// Drives the run to its end for a caller that waits. If the sub-agent is suspended, so is the
    /// caller.
    ///
    /// # Errors
    /// Those of the sub-agent; [`ErrorKind::Interrupted`] with its checkpoint if it is suspended.
    pub async fn finish(self) -> Result<Finished> {
        let (cx, place) = (self.cx.clone(), self.place.clone());
        match self.run().await? {
            RunEnd::Finished(finished) => Ok(*finished),
            RunEnd::Interrupted(child) | RunEnd::Paused(child) => {
                cx.may_wait("a sub-agent had to wait")?;
                cx.waits_for(&place, &child);
                Err(Error::suspended(&place, *child))
            }
            RunEnd::Cancelled(child) => {
                Err(Error::new(ErrorKind::Cancelled, "the sub-agent was cancelled").with_checkpoint(*child))
            }
        }
    }
}

/// Reservation of a sub-agent's id while its run is ready or running: two concurrent runs would
/// write one conversation.
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
