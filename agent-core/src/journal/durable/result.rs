//! What steps give.

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

/// What a step gave. It is typed and not yet bytes, so that an engine in memory does not serialise what nobody reads; every
/// variant is serde, for an engine that does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum StepResult {
    /// A model's answer.
    Model(Box<ModelResponse>),
    /// What a tool's call gave, and what it changed.
    Tool(Box<KeptCall>),
    /// A decision, or which attempt begins a call.
    Value {
        /// The value.
        value: Value,
        /// What models used that were asked for it, beside the agent's own.
        #[serde(default)]
        beside: Usage,
    },
    /// Messages that steer the run.
    Messages(Vec<Message>),
    /// What a tool's call asks: it is entered again when there are answers.
    Asked(Vec<Question>),
    /// A tool's call that an earlier attempt began did not happen.
    DidNot,
    /// How a model call failed.
    Failed(KeptError),
    /// How a sub-agent's run ended.
    Run(Box<KeptRun>),
}

/// What a tool's call gave, and what it changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct KeptCall {
    /// The tool's output, or how it failed.
    pub result: Result<ToolOutput, KeptError>,
    /// What it changed in the run's state.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub state: BTreeMap<String, KeptValue>,
    /// What it changed in the shared storage.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub globals: BTreeMap<String, KeptValue>,
    /// The entries of child runs that are not driven again with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub descendants: Vec<Entry>,
}

/// A value as it was kept with a step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct KeptValue {
    /// The value; none if it was removed.
    pub value: Option<Value>,
    /// Which change of the tree's values it was: steps may be given back in another order than the one they were kept in.
    pub order: u64,
}

/// How a sub-agent's run ended, and what it did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct KeptRun {
    /// Its end.
    pub finished: Finished,
    /// What it and its descendants noted.
    pub entries: Vec<Entry>,
    /// The values that they changed in the shared storage, as they were at its end.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub globals: BTreeMap<String, KeptValue>,
}

/// How a call failed, without what caused it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct KeptError {
    /// The error's kind.
    pub kind: ErrorKind,
    /// Its message.
    pub message: String,
    /// Whether to try again.
    pub retry: Retry,
    /// Its context.
    pub context: Vec<(Cow<'static, str>, String)>,
}

impl StepResult {
    pub(crate) fn value(value: Value) -> Self {
        Self::Value { value, beside: Usage::default() }
    }
}

/// True for errors that the call itself gave, and would not give if it were made at another time or by another process.
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

/// The error of a step whose kept result is that of another kind of step.
pub(crate) fn another_kind() -> Error {
    Error::new(ErrorKind::NonDeterminism, "a step gave the result of another kind of step")
}

impl KeptValue {
    pub(crate) fn new(value: Option<Value>) -> Self {
        Self { value, order: 0 }
    }
}

impl KeptCall {
    /// What a call gave that changed nothing.
    pub fn new(result: Result<ToolOutput, KeptError>) -> Self {
        Self { result, state: BTreeMap::new(), globals: BTreeMap::new(), descendants: Vec::new() }
    }

    /// What the child runs used that are not driven again with it.
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
