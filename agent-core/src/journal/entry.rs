//! What the journal holds.

use std::{collections::BTreeMap, sync::Arc};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Anchor;
use crate::{
    amounts::Amounts,
    history::{History, ReplaceReason},
    llm::ModelResponse,
    message::{AssistantMessage, Message, ToolMessage},
    state::{Answer, Exit, Question, RunIds, RunState, RunStatus},
    tooling::{Effect, ToolOutput},
    usage::Usage,
};

/// One entry of a session's journal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "super::json::EntryText")]
#[non_exhaustive]
pub struct Entry {
    /// Its place in the session, from 1; given by the journal.
    pub seq: u64,
    /// The run that wrote it.
    pub run: Arc<str>,
    /// When it was written: milliseconds since 1970, UTC.
    pub time: u64,
    /// The version of the body's format.
    pub version: u16,
    /// What happened.
    #[serde(serialize_with = "super::json::serialize")]
    pub body: EntryBody,
}

impl Entry {
    /// The version that this release writes.
    pub const VERSION: u16 = 1;

    /// An entry that has no place yet.
    pub fn new(run: Arc<str>, time: u64, body: EntryBody) -> Self {
        Self { seq: 0, run, time, version: Self::VERSION, body }
    }
}

/// What happened.
///
/// A run keeps its entries in memory, so a body is small: what is large and rare is boxed.
///
/// Stores keep its [`to_json`](Self::to_json). Its own serde form is the same for all kinds but [`Unknown`](Self::Unknown),
/// which it refuses.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum EntryBody {
    /// A run began. A run that goes on after a pause is the same run and does not begin again.
    RunStarted {
        /// Who runs.
        ids: Arc<RunIds>,
        /// Tells the agent's model, tools and middleware apart from another's.
        fingerprint: String,
    },
    /// A run went on from a checkpoint.
    RunResumed {
        /// Who runs.
        ids: Arc<RunIds>,
        /// The attempt's nonce.
        attempt: String,
    },
    /// A run goes on here that was kept elsewhere, or is a fork: what the entries before this one, which the import wrote too,
    /// do not tell of where it stood.
    Imported {
        /// Without the conversation, the values of the state and the storage, and the child runs.
        state: Box<RunState>,
    },
    /// A run ended, or stopped for now.
    RunEnded {
        /// How.
        status: RunStatus,
        /// What it used itself, without its sub-agents.
        usage: Box<Usage>,
        /// The error's text, if it failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<Box<str>>,
        /// The answer of a finished child run, whose caller may not have taken it yet.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        answer: Option<Box<str>>,
    },
    /// A message entered the history: from the user, from steering, or from a program.
    MessageAppended {
        /// The message; neither a tool result nor a message with calls.
        message: Message,
    },
    /// The kept history was replaced.
    HistoryReplaced {
        /// Why.
        reason: ReplaceReason,
        /// Messages before.
        before: usize,
        /// The messages now.
        history: History,
    },
    /// Everything since before a run is undone.
    Undone {
        /// The run.
        before_run: Arc<str>,
    },
    /// A model call was answered: the effect, before hooks saw it.
    ModelFinished {
        /// The step, from 1.
        step: u32,
        /// The answer.
        response: Arc<ModelResponse>,
    },
    /// The answer was accepted: after hooks saw it.
    ModelAccepted {
        /// The step.
        step: u32,
        /// The message, if hooks changed it or answered in the model's place.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<AssistantMessage>,
        /// How the run is to end, if the answer ends it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exit: Option<Box<Exit>>,
    },
    /// A hook declined the run's end: another answer is wanted.
    ExitDeclined {},
    /// A tool is about to run: the intent, before the effect.
    ToolStarted {
        /// The call.
        call_id: Arc<str>,
        /// The tool.
        name: Arc<str>,
        /// What repeating it would do.
        effect: Effect,
        /// The attempt's nonce.
        attempt: Arc<str>,
    },
    /// A tool that was begun had to wait, and had no effect yet: it is not in doubt.
    ToolSuspended {
        /// The call.
        call_id: Arc<str>,
    },
    /// A tool has run: the effect's result, before hooks saw it.
    ToolFinished {
        /// The call.
        call_id: Arc<str>,
        /// The result.
        output: ToolOutput,
    },
    /// A call is answered: after hooks saw it.
    ToolAnswered {
        /// The call.
        call_id: Arc<str>,
        /// The tool.
        name: Arc<str>,
        /// The answer, if it is not the finished one: hooks changed it, or the tool did not run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        output: Option<ToolOutput>,
    },
    /// All calls of a step's message are answered: message and results entered the history.
    TurnEnded {
        /// The step.
        step: u32,
        /// Results that a hook changed after they were answered, by call id.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        changed: BTreeMap<Arc<str>, ToolOutput>,
        /// How the run is to end, if the results end it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exit: Option<Box<Exit>>,
    },
    /// A decision of a middleware or a tool that must be the same when the run is driven again.
    Decided {
        /// Its name, checked when it is read back.
        name: String,
        /// What was decided.
        value: Value,
        /// True if it was decided before the first step, and so for the whole run.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        beginning: bool,
    },
    /// The run waits for an answer.
    Asked {
        /// The question.
        question: Box<Question>,
    },
    /// A question was answered.
    Answered {
        /// The question's id.
        id: Box<str>,
        /// The answer.
        answer: Value,
        /// Who answered, if known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<Box<str>>,
        /// The digest of the question: it is answered once.
        #[serde(default, skip_serializing_if = "str::is_empty")]
        digest: Box<str>,
    },
    /// Values changed during the step that ends here.
    StateChanged {
        /// The run's state.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        state: BTreeMap<String, Value>,
        /// The storage that the hierarchy shares; null where a value was removed.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        globals: BTreeMap<String, Option<Value>>,
    },
    /// Allowance was set aside for a model call. If that is never settled, because the process died, it was used.
    BudgetReserved {
        /// Which of the attempt's model calls, from 0.
        #[serde(default)]
        call: u32,
        /// How much.
        amounts: Amounts,
    },
    /// A reservation was settled.
    BudgetSettled {
        /// Which of the attempt's model calls.
        #[serde(default)]
        call: u32,
        /// How much was used.
        amounts: Amounts,
    },
    /// A model beside the agent's own answered, such as one that writes a summary. What came of it is in a
    /// [`Decided`](Self::Decided).
    SideModelFinished {
        /// What the call used.
        usage: Box<Usage>,
    },
    /// A call started a sub-agent.
    SubAgentLinked {
        /// The call.
        call_id: Arc<str>,
        /// The sub-agent's key.
        key: String,
        /// Its run.
        run: Arc<str>,
        /// True if the caller goes on meanwhile.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        background: bool,
    },
    /// The run was told how a sub-agent ended that ran in the background.
    SubAgentReported {
        /// The sub-agent's run.
        run: Arc<str>,
        /// The message that tells it, if that waits for the next model call as a [`Steered`](Self::Steered) one does.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<Message>,
    },
    /// A message that steers the run was accepted. It enters the history, as a [`MessageAppended`](Self::MessageAppended)
    /// of its own, before the next model call.
    Steered {
        /// The message.
        message: Message,
    },
    /// The session was given a title.
    Titled {
        /// The title.
        title: String,
    },
    /// The session can be read from here: see [`Anchor`].
    Anchored {
        /// What it tells of the entries before.
        anchor: Box<Anchor>,
    },
    /// An entry of a kind that this release does not know; kept as it is.
    #[serde(skip)]
    Unknown(Value),
}

impl EntryBody {
    /// What brings a turn of another conversation into a history: the message with its calls, and their results.
    pub fn of_turn(message: AssistantMessage, results: &[ToolMessage]) -> Vec<Self> {
        let accepted = Self::ModelAccepted { step: 0, message: Some(message), exit: None };
        let answered = results.iter().map(|result| {
            let output = ToolOutput::parts(result.parts().to_vec());
            let output = Some(if result.is_error() { output.failed() } else { output });
            Self::ToolAnswered { call_id: result.call_id().into(), name: result.name().into(), output }
        });
        let ended = Self::TurnEnded { step: 0, changed: BTreeMap::new(), exit: None };
        std::iter::once(accepted).chain(answered).chain([ended]).collect()
    }

    /// The question `id` was answered.
    pub fn answered(id: &str, answer: &Answer) -> Self {
        let Answer { value, digest, by } = answer.clone();
        Self::Answered { id: id.into(), answer: value, by: by.map(Into::into), digest: digest.into() }
    }
}
