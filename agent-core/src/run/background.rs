//! Sub-agents that run while their caller goes on.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Checkpoint, RunCx};
use crate::{error::Result, journal::EntryBody, message::Message};

/// A sub-agent that ran in the background when its caller stopped, and of whose end the caller does not know.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct BackgroundRun {
    /// The sub-agent's key.
    pub key: String,
    /// The call that started it.
    pub call_id: Arc<str>,
    /// Its run.
    pub run: Arc<str>,
    /// Where it stands; none if it was lost before it began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<Box<Checkpoint>>,
}

impl BackgroundRun {
    /// The run `run` of the sub-agent under `key`, started by the call `call_id`.
    pub fn new(
        key: impl Into<String>,
        call_id: Arc<str>,
        run: Arc<str>,
        checkpoint: impl Into<Option<Box<Checkpoint>>>,
    ) -> Self {
        Self { key: key.into(), call_id, run, checkpoint: checkpoint.into() }
    }
}

impl RunCx {
    /// Takes the sub-agents of an earlier attempt that ran in the background and that `wanted` says are its own, to go on with
    /// them. Those that nobody takes stay in the run's checkpoints.
    pub(super) fn take_background(&self, wanted: impl Fn(&BackgroundRun) -> bool) -> Vec<BackgroundRun> {
        let mut control = self.control();
        let (taken, left) = std::mem::take(&mut control.background).into_iter().partition(wanted);
        control.background = left;
        taken
    }

    /// Tells this run how the run `run` below it ended that was in the background: `message` is put before the next model call
    /// and, with the note that it was told, into the journal. Without a message it is only noted: the end was told otherwise,
    /// such as by a tool's result.
    ///
    /// # Errors
    /// As [`Inbox::push`](super::Inbox::push).
    pub(super) fn report(&self, run: &Arc<str>, message: Option<Message>) -> Result<()> {
        match message {
            Some(message) => self.0.inbox.push_report(run, message),
            None => {
                self.log().record(EntryBody::SubAgentReported { run: run.clone(), message: None });
                Ok(())
            }
        }
    }
}
