//! Ends of runs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;

use super::{Checkpoint, RunIds, RunState};
use crate::{
    error::{Error, ErrorKind},
    history::History,
    message::Message,
    usage::Usage,
};

/// End of a run that did not fail. A failed run returns an [`Error`](crate::Error), which carries a
/// checkpoint too.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum RunEnd {
    /// The run is finished.
    Finished(Box<Finished>),
    /// The run waits for the answers to [`Checkpoint::questions`].
    Interrupted(Box<Checkpoint>),
    /// The run was paused.
    Paused(Box<Checkpoint>),
    /// The run was cancelled.
    Cancelled(Box<Checkpoint>),
}

/// A finished run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Finished {
    /// Ids of the run.
    pub ids: RunIds,
    /// Final text: the result of a tool that ended the run, or the newest text if the run reached a
    /// limit.
    pub answer: String,
    /// Reason of the end.
    pub reason: ExitReason,
    /// The whole conversation.
    pub history: History,
    /// Number of steps: model calls, regardless of retries.
    pub steps: u32,
    /// Usage of the run itself.
    pub usage: Usage,
    /// Usage of the run and all its sub-agents.
    pub tree_usage: Usage,
    /// Number of executions of each tool.
    pub tool_calls: BTreeMap<String, u32>,
    /// Final state of the run.
    pub state: BTreeMap<String, Value>,
}

/// Reason why a run ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ExitReason {
    /// The model answered without calling a tool.
    Text,
    /// A tool that ends the run returned its result.
    Tool(String),
    /// The model answered with neither text nor calls although tools were offered, and did so again
    /// when it was called once more.
    Empty,
    /// A hook returned [`Finish`](crate::Verdict::Finish).
    Verdict,
    /// The step limit was reached.
    StepLimit,
    /// A budget was exhausted.
    Budget,
    /// The run's deadline passed ([`Deadlines::run`](crate::Deadlines::run)).
    Deadline,
    /// The model reached its token limit.
    Length,
    /// The provider withheld the answer.
    ContentFilter,
    /// [`RunCx::stop`](crate::RunCx::stop) was called, with this reason.
    Stopped(String),
    /// A reason written by a newer release.
    #[serde(untagged)]
    Other(serde_json::Value),
}

impl ExitReason {
    /// True unless a limit ended the run before it was done, or there was no whole answer.
    pub fn is_complete(&self) -> bool {
        !matches!(
            self,
            Self::Empty | Self::StepLimit | Self::Budget | Self::Deadline | Self::Length | Self::ContentFilter
        )
    }
}

impl std::fmt::Display for ExitReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Text => "text",
            Self::Empty => "empty",
            Self::Tool(reason) | Self::Stopped(reason) => reason,
            Self::Verdict => "verdict",
            Self::StepLimit => "step_limit",
            Self::Budget => "budget",
            Self::Deadline => "deadline",
            Self::Length => "length",
            Self::ContentFilter => "content_filter",
            Self::Other(reason) => reason.as_str().unwrap_or("other"),
        })
    }
}

/// A pending end of a run, as passed to [`on_exit`](crate::Middleware::on_exit).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Exit {
    /// Reason of the end.
    pub reason: ExitReason,
    /// Final text; a hook may change it.
    pub answer: String,
}

impl Exit {
    /// Creates an exit.
    pub fn new(reason: ExitReason, answer: impl Into<String>) -> Self {
        Self { reason, answer: answer.into() }
    }
}

impl Finished {
    /// The end of a run that stopped in this state, with this exit.
    pub fn of(state: &RunState, exit: &Exit) -> Self {
        let (ids, history) = (state.ids.clone(), state.history.clone());
        let mut finished = Self::new(ids, exit.answer.clone(), exit.reason.clone(), history);
        (finished.steps, finished.usage, finished.tree_usage) = (state.step, state.usage, state.tree_usage);
        finished.tool_calls.clone_from(&state.tool_calls);
        finished.state.clone_from(&state.state);
        finished
    }

    /// Creates a finished run from these values; the other fields have their defaults.
    pub fn new(ids: RunIds, answer: impl Into<String>, reason: ExitReason, history: History) -> Self {
        Self {
            ids,
            answer: answer.into(),
            reason,
            history,
            steps: 0,
            usage: Usage::default(),
            tree_usage: Usage::default(),
            tool_calls: BTreeMap::new(),
            state: BTreeMap::new(),
        }
    }

    /// The newest message of the conversation.
    pub fn last_message(&self) -> Option<&Message> {
        self.history.iter().next_back()
    }

    /// Returns the finished run, unless it ended early: at a limit on steps, budget, time or length, or
    /// because the provider withheld the answer or the model gave none. The answer of such a run is
    /// incomplete, and often empty.
    ///
    /// ```
    /// use agent_core::{ExitReason, Finished, History, RunIds};
    ///
    /// let end = |reason| Finished::new(RunIds::root("helper", "s1"), "so far", reason, History::default());
    /// assert!(end(ExitReason::Text).complete().is_ok());
    /// let e = end(ExitReason::Budget).complete().expect_err("it is incomplete");
    /// assert_eq!(e.message(), "agent 'helper' ended before it was done (budget); its answer so far: so far");
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Tool`], which a model can handle, with the context key `exit_reason`.
    pub fn complete(self) -> Result<Self, Error> {
        if self.reason.is_complete() {
            return Ok(self);
        }
        let (agent, reason) = (&self.ids.agent, &self.reason);
        let so_far = if self.answer.is_empty() { "none" } else { &self.answer };
        let message = format!("agent '{agent}' ended before it was done ({reason}); its answer so far: {so_far}");
        Err(Error::tool(message).with_context("exit_reason", reason.to_string()))
    }

    /// Deserialises the final text, for an agent that answers in JSON.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidAnswer`] if the text does not match `T`, with the exit reason: a run
    /// that ended at a limit may have no such answer.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, Error> {
        serde_json::from_str(&self.answer).map_err(|e| {
            Error::new(ErrorKind::InvalidAnswer, format!("the answer does not fit its type: {e}"))
                .with_context("exit_reason", self.reason.to_string())
        })
    }
}

impl RunEnd {
    /// Returns the finished run, for use with `?`.
    ///
    /// ```
    /// use agent_core::{ExitReason, Finished, History, RunEnd, RunIds};
    ///
    /// let finished = Finished::new(RunIds::root("helper", "s1"), "42", ExitReason::Text, History::default());
    /// let end = RunEnd::Finished(Box::new(finished));
    /// assert_eq!(end.into_result()?.answer, "42");
    /// # Ok::<(), agent_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Interrupted`] with its questions if the run waits for answers or is paused, and
    /// [`ErrorKind::Cancelled`] if it was cancelled; each with the checkpoint.
    pub fn into_result(self) -> Result<Finished, Error> {
        match self {
            Self::Finished(finished) => Ok(*finished),
            Self::Interrupted(c) => Err(Error::waiting(c.questions.clone()).with_checkpoint(*c)),
            Self::Paused(c) => Err(Error::new(ErrorKind::Interrupted, "the run was paused").with_checkpoint(*c)),
            Self::Cancelled(c) => Err(Error::new(ErrorKind::Cancelled, "the run was cancelled").with_checkpoint(*c)),
        }
    }

    /// Returns the final text of a run that finished and did not end early.
    ///
    /// # Errors
    /// Those of [`into_result`](Self::into_result) and [`Finished::complete`].
    pub fn text(self) -> Result<String, Error> {
        Ok(self.into_result()?.complete()?.answer)
    }

    /// Returns the finished run.
    ///
    /// # Errors
    /// Returns the checkpoint if the run did not finish.
    pub fn finished(self) -> Result<Finished, Box<Checkpoint>> {
        match self {
            Self::Finished(finished) => Ok(*finished),
            Self::Interrupted(c) | Self::Paused(c) | Self::Cancelled(c) => Err(c),
        }
    }

    /// Returns the checkpoint, if the run did not finish.
    pub fn checkpoint(&self) -> Option<&Checkpoint> {
        match self {
            Self::Finished(_) => None,
            Self::Interrupted(c) | Self::Paused(c) | Self::Cancelled(c) => Some(c),
        }
    }

    /// Like [`checkpoint`](Self::checkpoint), mutable.
    pub fn checkpoint_mut(&mut self) -> Option<&mut Checkpoint> {
        match self {
            Self::Finished(_) => None,
            Self::Interrupted(c) | Self::Paused(c) | Self::Cancelled(c) => Some(c),
        }
    }

    /// `finished`, `interrupted`, `paused` or `cancelled`.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Finished(_) => "finished",
            Self::Interrupted(_) => "interrupted",
            Self::Paused(_) => "paused",
            Self::Cancelled(_) => "cancelled",
        }
    }
}
