//! How runs end.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;

use super::{Checkpoint, RunIds};
use crate::{
    error::{Error, ErrorKind},
    history::History,
    message::Message,
    usage::Usage,
};

/// How a run ended without failing. A failed run is an [`Error`](crate::Error), which carries a checkpoint too.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum RunEnd {
    /// It is done.
    Finished(Box<Finished>),
    /// It waits for the answers to [`Checkpoint::questions`].
    Interrupted(Box<Checkpoint>),
    /// It was paused.
    Paused(Box<Checkpoint>),
    /// It was cancelled.
    Cancelled(Box<Checkpoint>),
}

/// A finished run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Finished {
    /// Who ran.
    pub ids: RunIds,
    /// The final text. A tool that ended the run gives its result; at a limit it is the last text there was.
    pub answer: String,
    /// Why it ended.
    pub reason: ExitReason,
    /// The whole conversation.
    pub history: History,
    /// Steps taken: model calls, however often each was tried.
    pub steps: u32,
    /// What the run used itself.
    pub usage: Usage,
    /// What it used with all its sub-agents.
    pub tree_usage: Usage,
    /// How often each tool was run.
    pub tool_calls: BTreeMap<String, u32>,
    /// The run's state.
    pub state: BTreeMap<String, Value>,
}

/// Why a run ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ExitReason {
    /// The model answered without calling a tool.
    Text,
    /// A tool that ends the run gave its result.
    Tool(String),
    /// The model said nothing and called nothing, though tools were on offer, and did so again when it was asked once more.
    Empty,
    /// A hook said [`Finish`](crate::Verdict::Finish).
    Verdict,
    /// The step limit was reached.
    StepLimit,
    /// A budget was used up.
    Budget,
    /// The run's time was up ([`Deadlines::run`](crate::Deadlines::run)).
    Deadline,
    /// The model reached its token limit.
    Length,
    /// The provider withheld the answer.
    ContentFilter,
    /// [`RunCx::stop`](crate::RunCx::stop) was called, with this reason.
    Stopped(String),
    /// A reason that this release does not know: a newer one wrote it.
    #[serde(untagged)]
    Other(serde_json::Value),
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

/// A run that is about to finish, as [`on_exit`](crate::Middleware::on_exit) sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Exit {
    /// Why.
    pub reason: ExitReason,
    /// The final text; a hook may change it.
    pub answer: String,
}

impl Exit {
    /// An exit.
    pub fn new(reason: ExitReason, answer: impl Into<String>) -> Self {
        Self { reason, answer: answer.into() }
    }
}

impl Finished {
    /// A finished run of which only these are known.
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

    /// The final text as a type: for an agent whose answer is JSON.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidAnswer`] if it does not fit, with the exit reason: a run that a limit ended may have none.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, Error> {
        serde_json::from_str(&self.answer).map_err(|e| {
            Error::new(ErrorKind::InvalidAnswer, format!("the answer does not fit its type: {e}"))
                .with_context("exit_reason", self.reason.to_string())
        })
    }
}

impl RunEnd {
    /// The finished run.
    ///
    /// # Errors
    /// The checkpoint, if it did not finish.
    pub fn finished(self) -> Result<Finished, Box<Checkpoint>> {
        match self {
            Self::Finished(finished) => Ok(*finished),
            Self::Interrupted(c) | Self::Paused(c) | Self::Cancelled(c) => Err(c),
        }
    }

    /// Where the run stands, if it did not finish.
    pub fn checkpoint(&self) -> Option<&Checkpoint> {
        match self {
            Self::Finished(_) => None,
            Self::Interrupted(c) | Self::Paused(c) | Self::Cancelled(c) => Some(c),
        }
    }

    /// As [`checkpoint`](Self::checkpoint), to change it.
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
