//! Journal entries.

use std::{collections::BTreeMap, sync::Arc};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Anchor;
use crate::{
    amounts::Amounts,
    history::{History, ReplaceReason},
    llm::ModelResponse,
    message::{AssistantMessage, Message, ToolMessage},
    state::{Answer, ChildRun, Exit, Question, RunIds, RunState, RunStatus, is_default},
    tooling::{Effect, ToolOutput},
    usage::Usage,
};

/// One entry of a session's journal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "super::json::EntryText")]
#[non_exhaustive]
pub struct Entry {
    /// Position in the session, from 1; assigned by the journal.
    pub seq: u64,
    /// Id of the run that wrote the entry.
    pub run: Arc<str>,
    /// Time of writing, in milliseconds since 1970, UTC.
    pub time: u64,
    /// Version of the body's format.
    pub version: u16,
    /// The recorded event.
    #[serde(serialize_with = "super::json::serialize")]
    pub body: EntryBody,
}

impl Entry {
    /// The format version that this release writes.
    pub const VERSION: u16 = 1;

    /// Creates an entry that has no position yet.
    pub fn new(run: Arc<str>, time: u64, body: EntryBody) -> Self {
        Self { seq: 0, run, time, version: Self::VERSION, body }
    }
}

/// Content of an entry.
///
/// A run keeps its entries in memory, so a body is small: large and rare content is boxed.
///
/// Stores persist the text of [`to_json`](Self::to_json). The serde form is identical for all
/// variants except [`Unknown`](Self::Unknown), which serde rejects.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum EntryBody {
    /// A run began. A run that resumes after a pause is the same run and does not begin again.
    RunStarted {
        /// Ids of the run.
        ids: Arc<RunIds>,
        /// Fingerprint of the agent's model, tools and middleware.
        fingerprint: String,
    },
    /// A run resumed from a checkpoint.
    RunResumed {
        /// Ids of the run.
        ids: Arc<RunIds>,
        /// Nonce of the attempt.
        attempt: String,
    },
    /// A run that was persisted elsewhere, or a fork, continues in this journal: carries the part
    /// of its state that the entries before this one, written by the same import, do not describe.
    Imported {
        /// The state without the conversation, the values of the state and the storage, and the
        /// child runs.
        state: Box<RunState>,
    },
    /// A run ended or was suspended.
    RunEnded {
        /// Status with which it ended.
        status: RunStatus,
        /// Usage of the run itself, without its sub-agents.
        usage: Box<Usage>,
        /// Text of the error, if the run failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<Box<str>>,
        /// Answer of a finished child run, whose caller may not have taken it yet.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        answer: Option<Box<str>>,
    },
    /// A message was appended to the history: from the user, from steering, or from a program.
    MessageAppended {
        /// The message; neither a tool result nor a message with calls.
        message: Message,
    },
    /// The persisted history was replaced.
    HistoryReplaced {
        /// Reason of the replacement.
        reason: ReplaceReason,
        /// Number of messages before.
        before: usize,
        /// The new messages.
        history: History,
    },
    /// All entries since the beginning of a run are undone.
    Undone {
        /// Id of the run.
        before_run: Arc<str>,
    },
    /// A model call was answered. Records the effect, before hooks see it.
    ModelFinished {
        /// Number of the step, from 1.
        step: u32,
        /// The model's answer.
        response: Arc<ModelResponse>,
    },
    /// The model's answer was accepted, after hooks saw it.
    ModelAccepted {
        /// Number of the step.
        step: u32,
        /// The message, if hooks changed it or answered in place of the model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<AssistantMessage>,
        /// The exit, if the answer ends the run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exit: Option<Box<Exit>>,
    },
    /// A hook declined the run's end: the model is called again.
    ExitDeclined {},
    /// A hook or a tool asked the run to end at its next boundary. Only the first request counts.
    StopRequested {
        /// Exit reason of the run.
        reason: Box<str>,
    },
    /// A tool is about to run. Records the intent, before the effect.
    ToolStarted {
        /// Id of the call.
        call_id: Arc<str>,
        /// Name of the tool.
        name: Arc<str>,
        /// Effect class: the consequence of repeating the call.
        effect: Effect,
        /// Nonce of the attempt.
        attempt: Arc<str>,
    },
    /// A tool that began was suspended without an effect: the call is not in doubt.
    ToolSuspended {
        /// Id of the call.
        call_id: Arc<str>,
    },
    /// A tool has run. Records the result of the effect, before hooks see it.
    ToolFinished {
        /// Id of the call.
        call_id: Arc<str>,
        /// Output of the tool.
        output: ToolOutput,
    },
    /// A call is answered, after hooks saw the result.
    ToolAnswered {
        /// Id of the call.
        call_id: Arc<str>,
        /// Name of the tool.
        name: Arc<str>,
        /// The answer, if it differs from the recorded output: a hook changed it, or the tool did
        /// not run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        output: Option<ToolOutput>,
    },
    /// All calls of a step's message are answered: message and results are appended to the history.
    TurnEnded {
        /// Number of the step.
        step: u32,
        /// Results that a hook changed after they were answered, by call id.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        changed: BTreeMap<Arc<str>, ToolOutput>,
        /// The exit, if the results end the run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exit: Option<Box<Exit>>,
    },
    /// A decision of a middleware or a tool that must be the same when the run is driven again.
    Decided {
        /// Name of the decision, checked when it is read back.
        name: String,
        /// Value of the decision.
        value: Value,
        /// True if it was decided before the first step, and so holds for the whole run.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        beginning: bool,
    },
    /// The run asked a question and waits for the answer.
    Asked {
        /// The question.
        question: Box<Question>,
    },
    /// A question was answered.
    Answered {
        /// Id of the question.
        id: Box<str>,
        /// Value of the answer.
        answer: Value,
        /// The person or system that answered, if known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<Box<str>>,
        /// Digest of the question: it is answered once.
        #[serde(default, skip_serializing_if = "str::is_empty")]
        digest: Box<str>,
    },
    /// Values changed during the step that ends here.
    StateChanged {
        /// Changed values of the run's state.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        state: BTreeMap<String, Value>,
        /// Changed values of the storage that the hierarchy shares; null where a value was removed.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        globals: BTreeMap<String, Option<Value>>,
    },
    /// The budget reserved an allowance for a model call. A reservation that is never settled,
    /// because the process died, counts as used.
    BudgetReserved {
        /// Number of the attempt's model call, from 0.
        #[serde(default)]
        call: u32,
        /// Reserved amounts.
        amounts: Amounts,
    },
    /// A reservation was settled.
    BudgetSettled {
        /// Number of the attempt's model call, from 0.
        #[serde(default)]
        call: u32,
        /// Used amounts.
        amounts: Amounts,
    },
    /// A side model call was answered, that is, a call of a model other than the agent's own, for
    /// example one that writes a summary. Its result is in a [`Decided`](Self::Decided) entry.
    SideModelFinished {
        /// Usage of the call.
        usage: Box<Usage>,
    },
    /// A call started a sub-agent.
    SubAgentLinked {
        /// Id of the call; for a hook that belongs to no call its position, such as
        /// `step-2/before_model-0`.
        call_id: Arc<str>,
        /// Hook around the call that started it, such as `after_tool-0`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hook: Option<Arc<str>>,
        /// Number of sub-agents that the same call or hook started earlier under the same key.
        #[serde(default, skip_serializing_if = "is_default")]
        n: u32,
        /// Prefix of the ids of its questions, as the run asks them. Default: `call_id`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        place: Option<Arc<str>>,
        /// Key of the sub-agent.
        key: String,
        /// Run id of the sub-agent.
        run: Arc<str>,
        /// True if the sub-agent runs in the background.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        background: bool,
    },
    /// The result of a background sub-agent was reported to the run.
    SubAgentReported {
        /// Run id of the sub-agent.
        run: Arc<str>,
        /// The message that reports the result, if it waits for the next model call, like a
        /// [`Steered`](Self::Steered) message.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<Message>,
    },
    /// A message that steers the run was accepted. Before the next model call it enters the history
    /// with a separate [`MessageAppended`](Self::MessageAppended) entry.
    Steered {
        /// The message.
        message: Message,
    },
    /// The session's title was set.
    Titled {
        /// The new title.
        title: String,
    },
    /// A snapshot, from which the session can be read: see [`Anchor`].
    Anchored {
        /// Snapshot of the entries before this one.
        anchor: Box<Anchor>,
    },
    /// An entry of a kind that this release does not know; stored unchanged.
    #[serde(skip)]
    Unknown(Value),
}

impl EntryBody {
    /// True for an entry that comes at any time and belongs to no step's batch.
    pub(crate) fn is_of_no_step(&self) -> bool {
        matches!(self, Self::Steered { .. } | Self::SubAgentReported { .. })
    }

    /// Returns the entries that append a turn of another conversation to a history: the message
    /// with its calls, and their results.
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

    /// Returns the entry that records that a run started this sub-agent.
    pub fn linked(child: ChildRun) -> Self {
        let ChildRun { call_id, hook, key, n, place, run, background, .. } = child;
        Self::SubAgentLinked { call_id, hook, n, place, key, run, background }
    }

    /// Returns the entry that records the answer to the question `id`.
    pub fn answered(id: &str, answer: &Answer) -> Self {
        let Answer { value, digest, by } = answer.clone();
        Self::Answered { id: id.into(), answer: value, by: by.map(Into::into), digest: digest.into() }
    }
}
