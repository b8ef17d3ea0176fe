//! Events, and how they follow from the journal.

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

/// Something that happened in a run or in one below it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Event {
    /// Its place in the stream.
    pub position: Position,
    /// Whose it is.
    pub ids: Arc<RunIds>,
    /// What happened.
    pub kind: EventKind,
}

/// A place in a session's stream of events. What is in the journal has its sequence number; what is only passing (a chunk, a
/// progress report) has a place after it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Position {
    /// The journal's sequence number.
    pub seq: u64,
    /// The place after it; 0 is the journalled event itself.
    pub after: u32,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum EventKind {
    /// A run began.
    RunStarted,
    /// A run went on from a checkpoint.
    RunResumed,
    /// A step began: the model is about to be called.
    StepStarted {
        /// The step, from 1.
        step: u32,
    },
    /// A piece of a message, as the hooks let it through.
    Chunk(Chunk),
    /// A message entered the conversation.
    Message(Message),
    /// The model's answer is complete, as the hooks left it.
    ModelAnswered {
        /// The step.
        step: u32,
        /// What was said.
        message: AssistantMessage,
        /// What the call used; nothing if it was made before a restart, and counted then.
        usage: Usage,
    },
    /// A tool is about to run.
    ToolStarted {
        /// The call.
        call_id: Arc<str>,
        /// The tool.
        name: Arc<str>,
    },
    /// A tool reports how far it is.
    ToolProgress {
        /// The call.
        call_id: Arc<str>,
        /// In the tool's words.
        progress: Value,
    },
    /// A call is answered; it may not have run.
    ToolAnswered {
        /// The call.
        call_id: Arc<str>,
        /// The tool.
        name: Arc<str>,
        /// The answer, as the hooks left it.
        output: ToolOutput,
    },
    /// All calls of a message are answered, and entered the conversation with it: the end of the results.
    ToolsAnswered {
        /// The step; 0 for a message that came with the request.
        step: u32,
    },
    /// A call started a sub-agent.
    SubAgentStarted {
        /// The call.
        call_id: Arc<str>,
        /// The sub-agent's key.
        key: String,
        /// Its run.
        run: Arc<str>,
    },
    /// The run was told how a sub-agent ended that ran in the background.
    SubAgentReported {
        /// The sub-agent's run.
        run: Arc<str>,
    },
    /// The kept history was replaced.
    HistoryReplaced {
        /// Why.
        reason: String,
        /// Messages before.
        before: usize,
        /// Messages now.
        after: usize,
    },
    /// The conversation is being compacted.
    CompactionStarted {
        /// What for.
        mode: CompactionMode,
        /// What set it off, with figures.
        trigger: String,
    },
    /// A compaction ended. If it took place, an event that the history was replaced follows.
    Compaction(Compaction),
    /// A call is tried again.
    Retry {
        /// Which try comes now, from 2.
        attempt: u32,
        /// Seconds until it does.
        delay: f64,
        /// The class of the last one's error.
        kind: ErrorKind,
        /// Why the last one failed.
        error: String,
    },
    /// A model failed and another one is asked now.
    Failover {
        /// The model that failed: its provider and its name.
        from: String,
        /// The model that is asked now.
        to: String,
        /// The class of the error.
        kind: ErrorKind,
        /// Why it failed.
        error: String,
    },
    /// A model call is slow, and the same call was made a second time beside it.
    Hedge {
        /// Seconds since the first was made.
        delay: f64,
    },
    /// A circuit breaker lets calls through again, or no longer.
    Circuit {
        /// What the breaker guards.
        key: String,
        /// How it stands now.
        state: CircuitState,
    },
    /// The run waits for an answer.
    Asked(Question),
    /// A question was answered.
    Answered {
        /// The question's id.
        id: String,
    },
    /// Values of the run's state or of the shared storage changed.
    StateChanged {
        /// The state's keys.
        state: Vec<String>,
        /// The storage's keys.
        globals: Vec<String>,
    },
    /// Something went wrong that did not end the run.
    Warning {
        /// What.
        message: String,
    },
    /// The reader fell behind, and what it missed cannot be read from the journal, though it was tried for some seconds. It
    /// is the last event of that reader's stream; the run goes on, and whoever subscribes later reads it from its start.
    Unreadable {
        /// The sequence number of the last entry that the reader has.
        after: u64,
        /// Why it cannot be read.
        error: String,
    },
    /// An event of an author's own.
    Custom {
        /// Its name.
        name: String,
        /// Its content.
        value: Value,
    },
    /// A run ended, or stopped for now.
    RunEnded {
        /// How.
        status: RunStatus,
        /// What it used itself, without its sub-agents.
        usage: Usage,
        /// The error's text, if it failed.
        error: Option<String>,
    },
}

/// Whether a circuit breaker lets calls through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CircuitState {
    /// All of them.
    #[default]
    Closed,
    /// None, for some time.
    Open,
    /// One, to see how it goes.
    HalfOpen,
}

/// Reads the journal entries of one tree of runs as events. It remembers what later entries refer to, so it must see them
/// from the tree's start; those of other trees in the same session are passed over.
#[derive(Debug, Default)]
pub(super) struct Projector {
    /// The tree: that of the first run that is seen.
    root: Option<Arc<str>>,
    runs: HashMap<Arc<str>, Run>,
}

#[derive(Debug)]
struct Run {
    ids: Arc<RunIds>,
    /// The answer that was not accepted yet.
    answer: Option<(AssistantMessage, Usage)>,
    /// The results that were not accepted yet.
    outputs: HashMap<Arc<str>, ToolOutput>,
}

impl Projector {
    /// A projector that comes into a run after its first entry.
    pub(super) fn for_run(ids: &Arc<RunIds>) -> Self {
        let mut projector = Self::default();
        projector.expect(ids);
        projector
    }

    /// The run `ids` began, though its first entry is not seen.
    pub(super) fn expect(&mut self, ids: &Arc<RunIds>) {
        self.root.get_or_insert_with(|| ids.root_run_id.clone());
        let run = Run { ids: ids.clone(), answer: None, outputs: HashMap::new() };
        self.runs.entry(ids.run_id.clone()).or_insert(run);
    }

    pub(super) fn project(&mut self, entry: &Entry) -> Option<Event> {
        if let EntryBody::RunStarted { ids, .. } | EntryBody::RunResumed { ids, .. } = &entry.body {
            let run = Run { ids: ids.clone(), answer: None, outputs: HashMap::new() };
            if *self.root.get_or_insert_with(|| ids.root_run_id.clone()) == ids.root_run_id {
                self.runs.entry(entry.run.clone()).or_insert(run).ids = ids.clone(); // another worker may go on with it
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
