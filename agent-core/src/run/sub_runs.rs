//! [`SubRuns`]: a run, as a middleware sees it that starts and watches runs below.

use std::sync::Arc;

use super::sub_run::{SubAgentCall, SubRun};
use crate::state::{BackgroundRun, Checkpoint};
use crate::{cx::RunCx, request::SubAgents};
use crate::{
    error::Result,
    journal::{Entry, EntryBody, SubAgentRecord, each_entry},
    message::Message,
    middleware::Middlewares,
};

/// A run, as a middleware sees it that starts and watches runs below it.
///
/// ```
/// use agent_core::{
///     Result, RunCx, RunEnd,
///     engine::{SubAgentCall, SubRuns},
/// };
///
/// async fn ask(cx: &RunCx) -> Result<RunEnd> {
///     SubRuns::of(cx).begin(SubAgentCall::new("researcher", "Find the source.")).await?.run().await
/// }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct SubRuns<'a>(&'a RunCx);

impl<'a> SubRuns<'a> {
    /// The runs below `cx`.
    pub fn of(cx: &'a RunCx) -> Self {
        Self(cx)
    }

    /// The agents that the run may call.
    pub fn agents(self) -> &'a SubAgents {
        self.0.sub_agents()
    }

    /// Middlewares of agents above that cover the run too, outermost first.
    pub fn inherited(self) -> &'a Middlewares {
        self.0.inherited()
    }

    /// Makes a sub-agent's run ready. From now on the journal knows that it was started.
    ///
    /// # Errors
    /// [`ErrorKind::SubAgentNotFound`](crate::ErrorKind::SubAgentNotFound) for an unknown key or id;
    /// [`ErrorKind::Limit`](crate::ErrorKind::Limit) at a cap on depth or fan-out;
    /// [`ErrorKind::Tool`](crate::ErrorKind::Tool) if the sub-agent is at work already.
    pub async fn begin(self, call: SubAgentCall) -> Result<SubRun> {
        self.0.sub_run(call).await
    }

    /// The sub-agents that this agent called in its session so far, oldest first: those that can be recalled.
    ///
    /// # Errors
    /// Those of [`Journal::read`](crate::Journal::read).
    pub async fn known(self) -> Result<Vec<SubAgentRecord>> {
        self.0.known_sub_agents().await
    }

    /// Notes that the run waits for the answers to what a run below asks that stopped with it.
    pub fn ask_for(self, below: &Checkpoint) {
        for question in &below.questions {
            let question = question.under(&below.ids.run_id);
            self.0.log().record(EntryBody::Asked { question: question.into() });
        }
    }

    /// Takes the sub-agents of an earlier attempt that ran in the background and that `wanted` says are its own, to go on with
    /// them. Those that nobody takes stay in the run's checkpoints.
    pub fn take_background(self, wanted: impl Fn(&BackgroundRun) -> bool) -> Vec<BackgroundRun> {
        self.0.take_background(wanted)
    }

    /// Makes ready to go on with a sub-agent that ran in the background, with the answers to its questions.
    ///
    /// # Errors
    /// [`ErrorKind::SubAgentNotFound`](crate::ErrorKind::SubAgentNotFound) if its key is not known any more.
    pub fn resume(self, background: &BackgroundRun, checkpoint: Checkpoint) -> Result<SubRun> {
        self.0.resume_background(background, checkpoint)
    }

    /// Tells the run how the run `run` below it ended that was in the background: `message` is put before the next model call
    /// and, with the note that it was told, into the journal. Without a message it is only noted: the end was told otherwise,
    /// such as by a tool's result.
    ///
    /// # Errors
    /// [`ErrorKind::Stopped`](crate::ErrorKind::Stopped) if the run is over.
    pub fn report(self, run: &Arc<str>, message: Option<Message>) -> Result<()> {
        self.0.report(run, message)
    }

    /// True if messages wait for the run's next model call.
    pub fn has_steering(self) -> bool {
        !self.0.inbox().is_empty()
    }

    /// Waits until a message waits for the run's next model call.
    pub async fn steered(self) {
        self.0.inbox().arrived().await;
    }

    /// Hands every durable entry of the session to `take`, oldest first.
    ///
    /// # Errors
    /// Those of [`Journal::read`](crate::Journal::read).
    pub async fn each_entry(self, take: impl FnMut(&Entry)) -> Result<()> {
        each_entry(&**self.0.emitter().hub().journal(), &self.0.ids().session, 0, take).await
    }
}
