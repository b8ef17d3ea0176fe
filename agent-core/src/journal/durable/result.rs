//! Results of steps.

use std::{borrow::Cow, collections::BTreeMap};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    error::{Error, ErrorKind, Result, Retry},
    journal::{Entry, EntryBody},
    llm::ModelResponse,
    message::Message,
    state::{Finished, Question},
    tooling::ToolOutput,
    usage::Usage,
};

/// Result of a step. It is typed instead of bytes, so that an in-memory engine need not serialise
/// it; all variants implement serde for engines that do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum StepResult {
    /// Answer of a model.
    Model(Box<ModelResponse>),
    /// Result and changes of a tool call.
    Tool(Box<KeptCall>),
    /// Value of a decision, or nonce of the attempt that begins a call.
    Value {
        /// The value.
        value: Value,
        /// Usage of side model calls made for the decision.
        #[serde(default)]
        beside: Usage,
    },
    /// Messages that steer the run.
    Messages(Vec<Message>),
    /// Questions of a tool call, which is entered again when they are answered.
    Asked(Vec<Question>),
    /// A tool call that an earlier attempt began did not happen.
    DidNot,
    /// Error of a model call.
    Failed(KeptError),
    /// End of a sub-agent's run.
    Run(Box<KeptRun>),
}

/// Result of a tool call, with the changes it made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct KeptCall {
    /// Output of the tool, or its error.
    pub result: Result<ToolOutput, KeptError>,
    /// Changed values of the run's state.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub state: BTreeMap<String, KeptValue>,
    /// Changed values of the shared storage.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub globals: BTreeMap<String, KeptValue>,
    /// Entries of child runs that are not driven again with the call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub descendants: Vec<Entry>,
    /// Reason for which the run was requested to stop by the time the call ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<String>,
}

/// A value persisted with a step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct KeptValue {
    /// The value; `None` if it was removed.
    pub value: Option<Value>,
    /// Number of the change among all changes of the tree's values: steps may be returned in
    /// another order than they were persisted.
    pub order: u64,
}

/// End of a sub-agent's run, with its effects.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct KeptRun {
    /// The end of the run.
    pub finished: Finished,
    /// Journal entries of the run and its descendants.
    pub entries: Vec<Entry>,
    /// Values that they changed in the shared storage, as of the run's end.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub globals: BTreeMap<String, KeptValue>,
}

/// Error of a call, without its source.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct KeptError {
    /// Kind of the error.
    pub kind: ErrorKind,
    /// Message of the error.
    pub message: String,
    /// Retry advice of the error.
    pub retry: Retry,
    /// Context of the error.
    pub context: Vec<(Cow<'static, str>, String)>,
}

impl StepResult {
    pub(crate) fn value(value: Value) -> Self {
        Self::Value { value, beside: Usage::default() }
    }
}

/// True for errors that the call itself returned and that do not depend on the time or the process.
pub(crate) fn is_kept(kind: ErrorKind) -> bool {
    !matches!(
        kind,
        ErrorKind::Interrupted
            | ErrorKind::Cancelled
            | ErrorKind::Stopped
            | ErrorKind::Limit
            | ErrorKind::Store
            | ErrorKind::NonDeterminism
            | ErrorKind::Busy
    )
}

/// Error: the stored result has a different step kind.
pub(crate) fn another_kind() -> Error {
    Error::new(ErrorKind::NonDeterminism, "a step gave the result of another kind of step")
}

impl KeptValue {
    pub(crate) fn new(value: Option<Value>) -> Self {
        Self { value, order: 0 }
    }
}

impl KeptCall {
    /// Creates the result of a call without changes.
    pub fn new(result: Result<ToolOutput, KeptError>) -> Self {
        Self { result, state: BTreeMap::new(), globals: BTreeMap::new(), descendants: Vec::new(), stop: None }
    }

    /// Usage of the child runs that are not driven again with the call.
    pub(crate) fn used_by_descendants(&self) -> Usage {
        let mut all = Usage::default();
        for entry in &self.descendants {
            match &entry.body {
                EntryBody::ModelFinished { response, .. } => all += response.usage,
                EntryBody::SideModelFinished { usage } => all += **usage,
                _ => {}
            }
        }
        all
    }
}

impl KeptError {
    pub(crate) fn of(e: &Error) -> Self {
        let (kind, message, retry) = (e.kind(), e.message().to_owned(), e.retry());
        Self { kind, message, retry, context: e.contexts().to_vec() }
    }
}

impl From<KeptError> for Error {
    fn from(kept: KeptError) -> Self {
        let e = Self::new(kept.kind, kept.message).with_retry(kept.retry);
        kept.context.into_iter().fold(e, |e, (key, value)| e.with_context(key, value))
    }
}
