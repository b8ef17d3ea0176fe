//! What a run does with sub-agents that ran in the background.

use std::sync::Arc;

use super::RunCx;
use crate::{error::Result, journal::EntryBody, message::Message, state::BackgroundRun};

impl RunCx {
    /// Takes the sub-agents of an earlier attempt that ran in the background and that `wanted` says are its own, to go on with
    /// them. Those that nobody takes stay in the run's checkpoints.
    pub(crate) fn take_background(&self, wanted: impl Fn(&BackgroundRun) -> bool) -> Vec<BackgroundRun> {
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
    pub(crate) fn report(&self, run: &Arc<str>, message: Option<Message>) -> Result<()> {
        match message {
            Some(message) => self.0.inbox.push_report(run, message),
            None => {
                self.log().record(EntryBody::SubAgentReported { run: run.clone(), message: None });
                Ok(())
            }
        }
    }
}
