//! Events, and their projection from journal entries.

use std::{collections::HashMap, sync::Arc};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Compaction, CompactionMode};
use crate::{
    error::ErrorKind,
    journal::{Entry, EntryBody},
    llm::Chunk,
    message::{AssistantMessage, Message},
    state::{Question, RunIds, RunStatus},
    tooling::ToolOutput,
    usage::Usage,
};

/// An event of a run or one of its descendants.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Event {
    /// Position in the stream.
    pub position: Position,
    /// Ids of the run.
    pub ids: Arc<RunIds>,
    /// Content of the event.
    pub kind: EventKind,
}

/// Position in a session's event stream. A journalled event has the sequence number of its entry; a
/// transient event (a chunk, a progress report) has a position after it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Position {
    /// Sequence number in the journal.
    pub seq: u64,
    /// Number after that entry; 0 is the journalled event itself.
    pub after: u32,
}

/// Content of an event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum EventKind {
    /// A run began.
    RunStarted,
    /// A run resumed from a checkpoint.
    RunResumed,
    /// A step began: the model is about to be called.
    StepStarted {
        /// Number of the step, from 1.
        step: u32,
    },
    /// A chunk of a message, as transformed by the hooks.
    Chunk(Chunk),
    /// A message was appended to the conversation.
    Message(Message),
    /// The model's answer is complete, as the hooks left it.
    ModelAnswered {
        /// Number of the step.
        step: u32,
        /// The model's answer.
        message: AssistantMessage,
        /// Usage of the call; zero if it was made, and counted, before a restart.
        usage: Usage,
    },
    /// A tool is about to run.
    ToolStarted {
        /// Id of the call.
        call_id: Arc<str>,
        /// Name of the tool.
        name: Arc<str>,
    },
    /// A tool reported its progress.
    ToolProgress {
        /// Id of the call.
        call_id: Arc<str>,
        /// Tool-specific content.
        progress: Value,
    },
    /// A call is answered; the tool may not have run.
    ToolAnswered {
        /// Id of the call.
        call_id: Arc<str>,
        /// Name of the tool.
        name: Arc<str>,
        /// The answer, as the hooks left it.
        output: ToolOutput,
    },
    /// All calls of a message are answered: the message and the results were appended to the
    /// conversation.
    ToolsAnswered {
        /// Number of the step; 0 for a message that came with the request.
        step: u32,
    },
    /// A call started a sub-agent.
    SubAgentStarted {
        /// Id of the call.
        call_id: Arc<str>,
        /// Key of the sub-agent.
        key: String,
        /// Run id of the sub-agent.
        run: Arc<str>,
    },
    /// The end of a background sub-agent was reported to the run.
    SubAgentReported {
        /// Run id of the sub-agent.
        run: Arc<str>,
    },
    /// The persisted history was replaced.
    HistoryReplaced {
        /// Reason of the replacement.
        reason: String,
        /// Number of messages before.
        before: usize,
        /// Number of messages now.
        after: usize,
    },
    /// The conversation is being compacted.
    CompactionStarted {
        /// Purpose of the compaction.
        mode: CompactionMode,
        /// Cause of the compaction, with metrics.
        trigger: String,
    },
    /// A compaction ended. If it replaced the history, a [`HistoryReplaced`](Self::HistoryReplaced)
    /// event follows.
    Compaction(Compaction),
    /// A call is retried.
    Retry {
        /// Number of the next attempt, from 2.
        attempt: u32,
        /// Delay before the next attempt, in seconds.
        delay: f64,
        /// Kind of the last attempt's error.
        kind: ErrorKind,
        /// Error text of the last attempt.
        error: String,
    },
    /// A model failed, and another one is called.
    Failover {
        /// Provider and name of the failed model.
        from: String,
        /// Provider and name of the next model.
        to: String,
        /// Kind of the error.
        kind: ErrorKind,
        /// Text of the error.
        error: String,
    },
    /// A model call is slow, and a second, concurrent call was started (hedging).
    Hedge {
        /// Time since the first call started, in seconds.
        delay: f64,
    },
    /// A circuit breaker changed its state.
    Circuit {
        /// Key of the guarded resource.
        key: String,
        /// New state of the breaker.
        state: CircuitState,
    },
    /// The run waits for an answer.
    Asked(Question),
    /// A question was answered.
    Answered {
        /// Id of the question.
        id: String,
    },
    /// Values of the run's state or of the shared storage changed.
    StateChanged {
        /// Changed keys of the state.
        state: Vec<String>,
        /// Changed keys of the storage.
        globals: Vec<String>,
    },
    /// An error that did not end the run.
    Warning {
        /// Description of the error.
        message: String,
    },
    /// The reader fell behind, and reading the missed events from the journal failed for several
    /// seconds. This is the last event of that reader's stream; the run continues, and a new
    /// subscription reads it from its start.
    Unreadable {
        /// Sequence number of the last entry that the reader received.
        after: u64,
        /// Text of the error.
        error: String,
    },
    /// A custom event of a middleware or an application.
    Custom {
        /// Name of the event.
        name: String,
        /// Content of the event.
        value: Value,
    },
    /// A run ended or was suspended.
    RunEnded {
        /// Status with which it ended.
        status: RunStatus,
        /// Usage of the run itself, without its sub-agents.
        usage: Usage,
        /// Text of the error, if the run failed.
        error: Option<String>,
    },
}

/// State of a circuit breaker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CircuitState {
    /// All calls pass.
    #[default]
    Closed,
    /// No call passes, for some time.
    Open,
    /// One trial call passes.
    HalfOpen,
}

/// Projects the journal entries of one run tree to events. It remembers data that later entries
/// refer to, so it must see all entries from the tree's start; entries of other trees in the same
/// session are ignored.
#[derive(Debug, Default)]
pub(super) struct Projector {
    /// Root of the tree: that of the first run seen.
    root: Option<Arc<str>>,
    runs: HashMap<Arc<str>, Run>,
}

#[derive(Debug)]
struct Run {
    ids: Arc<RunIds>,
    /// The answer that is not accepted yet.
    answer: Option<(AssistantMessage, Usage)>,
    /// The results that are not accepted yet.
    outputs: HashMap<Arc<str>, ToolOutput>,
}

impl Projector {
    /// Creates a projector that starts after the run's first entry.
    pub(super) fn for_run(ids: &Arc<RunIds>) -> Self {
        let mut projector = Self::default();
        projector.expect(ids);
        projector
    }

    /// Registers the run `ids`, whose first entry will not be seen.
    pub(super) fn expect(&mut self, ids: &Arc<RunIds>) {
        self.root.get_or_insert_with(|| ids.root_run_id.clone());
        let run = Run { ids: ids.clone(), answer: None, outputs: HashMap::new() };
        self.runs.entry(ids.run_id.clone()).or_insert(run);
    }

    pub(super) fn project(&mut self, entry: &Entry) -> Option<Event> {
        if let EntryBody::RunStarted { ids, .. } | EntryBody::RunResumed { ids, .. } = &entry.body {
            let run = Run { ids: ids.clone(), answer: None, outputs: HashMap::new() };
            if *self.root.get_or_insert_with(|| ids.root_run_id.clone()) == ids.root_run_id {
                self.runs.entry(entry.run.clone()).or_insert(run).ids = ids.clone(); // the worker may differ
            }
        }
        let run = self.runs.get_mut(&entry.run)?;
        let kind = match entry.body.clone() {
            EntryBody::RunStarted { .. } => EventKind::RunStarted,
            EntryBody::RunResumed { .. } => EventKind::RunResumed,
            EntryBody::MessageAppended { message } => EventKind::Message(message),
            EntryBody::ModelFinished { response, .. } => {
                run.answer = Some((response.message.clone(), response.usage));
                return None;
            }
            EntryBody::ModelAccepted { step, message, .. } => {
                let (finished, usage) = run.answer.take().unzip();
                EventKind::ModelAnswered { step, message: message.or(finished)?, usage: usage.unwrap_or_default() }
            }
            EntryBody::ToolStarted { call_id, name, .. } => EventKind::ToolStarted { call_id, name },
            EntryBody::ToolFinished { call_id, output } => {
                run.outputs.insert(call_id, output);
                return None;
            }
            EntryBody::ToolAnswered { call_id, name, output } => {
                let finished = run.outputs.remove(&call_id);
                EventKind::ToolAnswered { call_id, name, output: output.or(finished)? }
            }
            EntryBody::TurnEnded { step, .. } => EventKind::ToolsAnswered { step },
            EntryBody::SubAgentLinked { call_id, key, run, .. } => EventKind::SubAgentStarted { call_id, key, run },
            EntryBody::SubAgentReported { run, .. } => EventKind::SubAgentReported { run },
            EntryBody::HistoryReplaced { reason, before, history } => {
                EventKind::HistoryReplaced { reason: reason.to_string(), before, after: history.len() }
            }
            EntryBody::Asked { question } => EventKind::Asked(*question),
            EntryBody::Answered { id, .. } => EventKind::Answered { id: id.into() },
            EntryBody::StateChanged { state, globals } => {
                EventKind::StateChanged { state: state.into_keys().collect(), globals: globals.into_keys().collect() }
            }
            EntryBody::RunEnded { status, usage, error, .. } => {
                EventKind::RunEnded { status, usage: *usage, error: error.map(Into::into) }
            }
            _ => return None,
        };
        Some(Event { position: Position { seq: entry.seq, after: 0 }, ids: run.ids.clone(), kind })
    }
}
