//! Replay: recorded results in place of calls to models and tools.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;
use serde_json::Value;

use super::{
    Durable, Entry, EntryBody, KeptCall, KeptError, KeptValue, Recording, SessionIndex, Step, StepBody, StepKind,
    StepResult,
};
use crate::{
    error::{Error, ErrorKind, Result},
    history::History,
    journal::SessionView,
    llm::ModelResponse,
    message::Message,
    state::Answer,
    tooling::ToolOutput,
    usage::Usage,
};

/// Recorded results of one run, by step.
pub(crate) struct Replay {
    /// Number of the current step.
    step: u32,
    /// True if the recording ends before the run's end.
    open: bool,
    models: BTreeMap<u32, VecDeque<Arc<ModelResponse>>>,
    tools: HashMap<(u32, Arc<str>), RecordedCall>,
    decisions: Vec<(String, Value, Usage)>,
    messages: BTreeMap<u32, Vec<Message>>,
}

/// Recorded result of a call, with its changes and child runs.
#[derive(Default)]
struct RecordedCall {
    /// `None` if the tool failed and the model received the error.
    output: Option<ToolOutput>,
    failure: Option<String>,
    state: BTreeMap<String, Value>,
    globals: BTreeMap<String, Option<Value>>,
    /// Entries of the child runs, which are not driven again.
    descendants: Vec<Entry>,
}

impl RecordedCall {
    fn kept(self) -> KeptCall {
        let failure = self.failure.unwrap_or_default();
        let mut kept = KeptCall::new(self.output.ok_or_else(|| KeptError::of(&Error::tool(failure))));
        let value = |(name, value)| (name, KeptValue::new(value));
        kept.globals = self.globals.into_iter().map(value).collect();
        kept.state = self.state.into_iter().map(|(name, v)| value((name, Some(v)))).collect();
        kept.descendants = self.descendants;
        kept
    }
}

/// Engine of a replayed run.
pub(crate) struct Recorded(pub(crate) Arc<Mutex<Replay>>);

#[async_trait]
impl Durable for Recorded {
    fn attempt(&self) -> &str {
        "replay"
    }

    async fn step(&self, step: &Step, body: StepBody<'_>) -> Result<StepResult> {
        match &step.kind {
            StepKind::Model { step } => self.lock().model(*step).map(|answer| StepResult::Model(Box::new(answer))),
            StepKind::Tool { call_id, .. } => {
                self.lock().tool(call_id).map(|call| StepResult::Tool(Box::new(call.kept())))
            }
            StepKind::Decision { name } => {
                self.lock().decision(name).map(|(value, side_usage)| StepResult::Value { value, beside: side_usage })
            }
            _ => body.await,
        }
    }
}

impl Recorded {
    fn lock(&self) -> MutexGuard<'_, Replay> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Replay {
    pub(crate) fn new(recording: &Recording) -> Self {
        let mut replay = Self {
            step: 0,
            open: recording.is_open(),
            models: BTreeMap::new(),
            tools: HashMap::new(),
            decisions: Vec::new(),
            messages: BTreeMap::new(),
        };
        let (mut step, mut newest, mut started) = (0, None, HashMap::<Arc<str>, (u32, Arc<str>)>::new());
        let mut side_usage = Usage::default();
        for entry in &recording.entries {
            if entry.run != recording.ids.run_id {
                if let EntryBody::RunStarted { ids, .. } = &entry.body
                    && let Some(above) = ids.parent_run_id.as_ref().and_then(|above| started.get(above).cloned())
                {
                    started.entry(entry.run.clone()).or_insert(above);
                }
                if let Some(call) = started.get(&entry.run) {
                    replay.tools.entry(call.clone()).or_default().descendants.push(entry.clone());
                }
                continue;
            }
            let finished = newest.take();
            match &entry.body {
                EntryBody::ModelFinished { step, response } => {
                    replay.models.entry(*step).or_default().push_back(response.clone());
                }
                EntryBody::ModelAccepted { step: accepted, .. } => step = *accepted,
                EntryBody::SubAgentLinked { call_id, run, .. } => {
                    let call = (step, call_id.clone());
                    replay.tools.entry(call.clone()).or_default().descendants.push(entry.clone());
                    started.insert(run.clone(), call);
                }
                EntryBody::ToolFinished { call_id, output } => {
                    let call = (step, call_id.clone());
                    replay.tools.entry(call.clone()).or_default().output = Some(output.clone());
                    newest = Some(call);
                }
                EntryBody::ToolAnswered { call_id, output: Some(output), .. } => {
                    replay.tools.entry((step, call_id.clone())).or_default().failure = Some(output.to_text());
                }
                EntryBody::StateChanged { state, globals } => {
                    if let Some(call) = finished.and_then(|call| replay.tools.get_mut(&call)) {
                        (call.state, call.globals) = (state.clone(), globals.clone());
                    }
                }
                EntryBody::SideModelFinished { usage } => side_usage += **usage,
                EntryBody::Decided { name, value, .. } => {
                    replay.decisions.push((name.clone(), value.clone(), std::mem::take(&mut side_usage)));
                }
                EntryBody::MessageAppended { message } if step > 0 => {
                    replay.messages.entry(step).or_default().push(message.clone());
                }
                _ => {}
            }
        }
        replay
    }

    /// Returns the model's answer in this step; an error if the recording has none.
    fn model(&mut self, step: u32) -> Result<ModelResponse> {
        self.step = step;
        let answer = self.models.get_mut(&step).and_then(VecDeque::pop_front);
        answer.map(|answer| (*answer).clone()).ok_or_else(|| self.missing("the model was not asked"))
    }

    /// Returns the recorded result of a call in this step; an error if the recording has none.
    fn tool(&mut self, call_id: &Arc<str>) -> Result<RecordedCall> {
        let call = self.tools.remove(&(self.step, call_id.clone()));
        let call = call.filter(|call| call.output.is_some() || call.failure.is_some());
        call.ok_or_else(|| self.missing(&format!("call '{call_id}' has no result")))
    }

    pub(crate) fn is_decided(&self, name: &str) -> bool {
        self.decisions.iter().any(|(made, ..)| made == name)
    }

    /// Returns the decision under this name, and the usage of the side model calls made for it.
    fn decision(&mut self, name: &str) -> Result<(Value, Usage)> {
        let at = self.decisions.iter().position(|(made, ..)| made == name);
        at.map(|at| self.decisions.remove(at))
            .map(|(_, value, used)| (value, used))
            .ok_or_else(|| self.missing(&format!("nothing was decided under '{name}'")))
    }

    /// Messages that arrived after this step.
    pub(crate) fn messages(&mut self, step: u32) -> Vec<Message> {
        self.messages.remove(&step).unwrap_or_default()
    }

    fn missing(&self, what: &str) -> Error {
        if self.open {
            return Error::new(ErrorKind::Interrupted, "the recording ends here");
        }
        let message = format!("the replay took another path at step {}: in the recording {what}", self.step);
        Error::new(ErrorKind::NonDeterminism, message).with_context("step", self.step.to_string())
    }
}

impl Recording {
    /// Returns the start of the recorded run: the session's content, the steps already taken, the
    /// input messages and the state.
    pub fn beginning(&self) -> RecordedBeginning {
        let mut index = SessionIndex::default();
        self.past.iter().for_each(|entry| index.apply(entry));
        let mut before = index.view(&self.ids.agent_id);
        let (mut messages, mut anchored, mut state) = (Vec::new(), None, BTreeMap::new());
        let mut first = true;
        let mut answers = BTreeMap::new();
        let mut step = None;
        for entry in self.own() {
            match &entry.body {
                EntryBody::HistoryReplaced { reason, history, .. }
                    if reason.as_str() == "resumed" && step.is_none() =>
                {
                    anchored = Some(history.clone());
                }
                EntryBody::StateChanged { state: values, globals } if first => {
                    state = values.clone();
                    before.globals.extend(globals.iter().filter_map(|(k, v)| Some((k.clone(), v.clone()?))));
                }
                EntryBody::MessageAppended { message } if step.is_none() => messages.push(message.clone()),
                EntryBody::ModelFinished { step: taken, .. } => drop(step.get_or_insert(taken.saturating_sub(1))),
                EntryBody::Answered { id, answer, by, digest } => {
                    answers.insert(id.to_string(), Answer::recorded(answer, digest, by.as_deref()));
                }
                _ => {}
            }
            first = matches!(entry.body, EntryBody::RunStarted { .. } | EntryBody::HistoryReplaced { .. });
        }
        let history = anchored.unwrap_or_else(|| before.history.clone());
        RecordedBeginning {
            past: self.past.clone(),
            before,
            history,
            step: step.unwrap_or(0),
            messages,
            state,
            answers,
        }
    }
}

/// Start of a recorded run.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RecordedBeginning {
    /// Entries of the session before the run.
    pub past: Vec<Entry>,
    /// View of the session before the run.
    pub before: SessionView,
    /// Conversation before the input messages.
    pub history: History,
    /// Number of steps that the run had taken elsewhere.
    pub step: u32,
    /// Input messages.
    pub messages: Vec<Message>,
    /// Initial state.
    pub state: BTreeMap<String, Value>,
    /// All answers that the run received, by question id.
    pub answers: BTreeMap<String, Answer>,
}
