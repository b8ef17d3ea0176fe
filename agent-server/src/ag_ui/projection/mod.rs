//! From the events of a run to those of AG-UI.

mod transcript;

use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
};

use agent::{Event, EventKind, Question, Usage, event::CompactionMode, journal::RunStatus};
use serde_json::{Value, json};

use self::transcript::Transcript;
use super::{
    event::{AgUi, AgUiEvent},
    outcome::{Interrupt, Outcome, SubOutcome, TokenUsage},
};
use crate::{
    conversation::interrupt_id,
    speech::{CLIENT_TOOL, Ending, Said, Speech, What, code},
};

/// The event by which an agent shares its state with front ends: one of its [own](EventKind::Custom) with this name, whose value is
/// the state as it is now. [`SharedState`](super::SharedState) sends it.
pub const STATE: &str = "ag-ui.state";

/// The version of the protocol.
pub(super) const VERSION: &str = "1.0";

/// Tells a run in the events of AG-UI: one event goes in, and those come out that a front end is sent for it.
///
/// Whatever comes in, what comes out keeps to the protocol's order: nothing goes on that did not begin, and all has ended before
/// the run has.
///
/// ```
/// use agent::{Agent, RunEnd, RunRequest, testing::{ScriptedModel, Turn}};
/// use agent_server::ag_ui::{Ending, Projection};
/// use futures::StreamExt;
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let agent = Agent::builder("greeter", ScriptedModel::new([Turn::text("Hello!")])).streaming(true).build()?;
/// let mut projection = Projection::new("thread", "run");
/// let mut told = projection.start();
/// let mut run = agent.start(RunRequest::user("Hi"));
/// while let Some(event) = run.next().await {
///     told.extend(projection.event(&event));
/// }
/// told.extend(projection.end(&Ending::of(&run.await)));
/// let kinds: Vec<_> = told.iter().map(|event| serde_json::to_value(event).unwrap()["type"].clone()).collect();
/// assert_eq!(kinds, ["RUN_STARTED", "STEP_STARTED", "TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END",
///     "STEP_FINISHED", "RUN_FINISHED"]);
/// # Ok::<(), agent::Error>(()) }).unwrap();
/// ```
#[derive(Debug)]
pub struct Projection {
    thread: String,
    run: String,
    speech: Speech,
    /// The step that each lane is in.
    steps: BTreeMap<Option<Arc<str>>, String>,
    transcript: Transcript,
    state: Option<Value>,
    usage: Usage,
    /// Activities that the front end has.
    activities: HashSet<String>,
    compactions: u32,
}

impl Projection {
    /// A run of this thread, as the front end names both.
    pub fn new(thread: impl Into<String>, run: impl Into<String>) -> Self {
        Self {
            thread: thread.into(),
            run: run.into(),
            speech: Speech::default(),
            steps: BTreeMap::new(),
            transcript: Transcript::default(),
            state: None,
            usage: Usage::default(),
            activities: HashSet::new(),
            compactions: 0,
        }
    }

    /// Says which messages the front end has, in the protocol's form: when something that was told is taken back, it is sent all
    /// of them without it.
    #[must_use]
    pub fn with_messages(mut self, messages: Vec<Value>) -> Self {
        self.transcript = Transcript::new(messages);
        self
    }

    /// The beginning.
    pub fn start(&mut self) -> Vec<AgUiEvent> {
        let (thread_id, run_id) = (self.thread.clone(), self.run.clone());
        vec![AgUi::RunStarted { thread_id, run_id, protocol_version: VERSION.to_owned() }.of_root()]
    }

    /// What the front end is sent for an event of the run's.
    pub fn event(&mut self, event: &Event) -> Vec<AgUiEvent> {
        let said = self.speech.event(event);
        self.tell(said)
    }

    /// The end: what is open is ended first. Nothing may follow.
    pub fn end(&mut self, ending: &Ending) -> Vec<AgUiEvent> {
        let said = self.speech.close();
        let mut told = self.tell(said);
        for (lane, step_name) in std::mem::take(&mut self.steps) {
            told.push(AgUi::StepFinished { step_name }.of(lane.map(|lane| lane.to_string())));
        }
        let usage = Vec::from_iter((self.usage.calls > 0).then(|| TokenUsage::from(&self.usage)));
        told.push(self.ending(ending, usage).of_root());
        told
    }

    /// The last event.
    fn ending(&self, ending: &Ending, usage: Vec<TokenUsage>) -> AgUi {
        let (result, outcome) = match ending {
            Ending::Finished { answer, .. } => {
                (Some(answer.as_str().into()), Outcome::Success { pending_tool_call_ids: Vec::new() })
            }
            Ending::Interrupted(questions) => (None, self.waits_for(questions)),
            Ending::Paused => (None, Outcome::Interrupt { interrupts: vec![Interrupt::paused()] }),
            Ending::Cancelled => (None, Outcome::Cancelled),
            Ending::Failed { kind, message } => {
                return AgUi::RunError { message: message.clone(), code: code(*kind), usage };
            }
        };
        AgUi::RunFinished { thread_id: self.thread.clone(), run_id: self.run.clone(), result, outcome, usage }
    }

    /// What a run waits for: calls of the front end's own tools are not asked about but left open. If there are questions besides,
    /// these come first, and the front end sees for itself which calls are open.
    fn waits_for(&self, questions: &[Question]) -> Outcome {
        let call = |question: &Question| {
            let call = question.id.split('/').next().unwrap_or_default();
            self.transcript.call(call)
        };
        let (pending, asked): (Vec<_>, Vec<_>) = questions.iter().partition(|question| question.kind == CLIENT_TOOL);
        if asked.is_empty() {
            return Outcome::Success { pending_tool_call_ids: pending.into_iter().filter_map(call).collect() };
        }
        let interrupts = asked.into_iter().map(|question| Interrupt::new(question, call(question))).collect();
        Outcome::Interrupt { interrupts }
    }

    fn tell(&mut self, said: Vec<Said>) -> Vec<AgUiEvent> {
        let mut told = Vec::new();
        for Said { lane, what } in said {
            let from = told.len();
            self.write(&lane, what, &mut told);
            told[from..].iter().for_each(|event| self.transcript.take(event));
        }
        told
    }

    fn write(&mut self, lane: &Option<Arc<str>>, what: What, told: &mut Vec<AgUiEvent>) {
        let mut tell = |event: AgUi| told.push(event.of(lane.as_deref().map(str::to_owned)));
        match what {
            What::LaneStarted { name, parent, call } => {
                let run = lane.as_deref().unwrap_or_default().to_owned();
                let started = AgUi::SubagentStarted {
                    run,
                    name: name.to_string(),
                    parent_subagent_run_id: parent.map(|parent| parent.to_string()),
                    parent_tool_call_id: call,
                };
                told.push(started.of_root());
            }
            What::LaneEnded { status, error, asked } => {
                if let Some(step_name) = self.steps.remove(lane) {
                    tell(AgUi::StepFinished { step_name });
                }
                let run = lane.as_deref().unwrap_or_default().to_owned();
                let interrupt_ids = asked.iter().map(|question| interrupt_id(question).to_owned()).collect();
                told.push(ended(run, &status, error, interrupt_ids).of_root());
            }
            What::Step(step) => {
                let step_name = format!("step {step}");
                if let Some(step_name) = self.steps.insert(lane.clone(), step_name.clone()) {
                    tell(AgUi::StepFinished { step_name });
                }
                tell(AgUi::StepStarted { step_name });
            }
            What::TextStarted { message: message_id } => {
                tell(AgUi::TextMessageStart { message_id, role: "assistant".to_owned() });
            }
            What::Text { message: message_id, delta } => tell(AgUi::TextMessageContent { message_id, delta }),
            What::TextEnded { message: message_id } => tell(AgUi::TextMessageEnd { message_id }),
            What::ThoughtStarted { thought: message_id } => {
                tell(AgUi::ReasoningStart { message_id: message_id.clone() });
                tell(AgUi::ReasoningMessageStart { message_id, role: "reasoning".to_owned() });
            }
            What::Thought { thought: message_id, delta } => tell(AgUi::ReasoningMessageContent { message_id, delta }),
            What::ThoughtSealed { thought: entity_id, sealed: encrypted_value } => {
                tell(AgUi::ReasoningEncryptedValue { subtype: "message".to_owned(), entity_id, encrypted_value });
            }
            What::ThoughtEnded { thought: message_id } => {
                tell(AgUi::ReasoningMessageEnd { message_id: message_id.clone() });
                tell(AgUi::ReasoningEnd { message_id });
            }
            What::CallStarted { call: tool_call_id, name, message: parent_message_id } => {
                tell(AgUi::ToolCallStart { tool_call_id, tool_call_name: name.to_string(), parent_message_id });
            }
            What::Arguments { call: tool_call_id, delta } => tell(AgUi::ToolCallArgs { tool_call_id, delta }),
            What::CallEnded { call: tool_call_id } => tell(AgUi::ToolCallEnd { tool_call_id }),
            What::CallAnswered { call: tool_call_id, output, .. } => {
                let message_id = format!("{tool_call_id}-result");
                tell(AgUi::ToolCallResult {
                    message_id,
                    tool_call_id,
                    content: output.to_text(),
                    role: "tool".to_owned(),
                });
            }
            What::AnswerEnded { usage, .. } => self.usage += usage,
            What::Retracted { messages, calls } => {
                told.push(AgUi::MessagesSnapshot { messages: self.transcript.without(&messages, &calls) }.of_root());
            }
            What::Heard { message: message_id, text } => {
                tell(AgUi::TextMessageStart { message_id: message_id.clone(), role: "user".to_owned() });
                tell(AgUi::TextMessageContent { message_id: message_id.clone(), delta: text });
                tell(AgUi::TextMessageEnd { message_id });
            }
            What::Progress { call, progress } => {
                let message_id = format!("{call}-progress");
                let activity_type = "TOOL_PROGRESS".to_owned();
                tell(if self.activities.insert(message_id.clone()) {
                    let content = json!({"toolCallId": call, "progress": progress});
                    AgUi::ActivitySnapshot { message_id, activity_type, content }
                } else {
                    let patch = json!([{"op": "replace", "path": "/progress", "value": progress}]);
                    AgUi::ActivityDelta { message_id, activity_type, patch }
                });
            }
            What::Notice(EventKind::Custom { name, value }) if name == STATE => {
                if let Some(event) = self.state(value) {
                    told.push(event.of_root());
                }
            }
            What::Notice(EventKind::Custom { name, value }) => tell(AgUi::Custom { name, value }),
            What::Notice(EventKind::CompactionStarted { mode, trigger }) => tell(self.compaction(mode, &trigger)),
            // By its kind: what holds nothing is a text, anything else an object of one field.
            What::Notice(kind) => match serde_json::to_value(&kind) {
                Ok(Value::Object(fields)) => {
                    for (name, value) in fields {
                        tell(AgUi::Custom { name, value });
                    }
                }
                Ok(Value::String(name)) => tell(AgUi::Custom { name, value: json!({}) }),
                _ => {}
            },
        }
    }

    /// The state as it is now: whole the first time, and from then on what is different.
    fn state(&mut self, now: Value) -> Option<AgUi> {
        let before = self.state.replace(now.clone());
        match before {
            None => Some(AgUi::StateSnapshot { snapshot: now }),
            Some(before) if before == now => None,
            Some(before) => {
                let patch = json_patch::diff(&before, &now);
                Some(AgUi::StateDelta { delta: serde_json::to_value(patch).unwrap_or_default() })
            }
        }
    }

    fn compaction(&mut self, mode: CompactionMode, trigger: &str) -> AgUi {
        self.compactions += 1;
        let message_id = format!("{}-compaction-{}", self.run, self.compactions);
        let content = json!({"mode": mode, "trigger": trigger});
        AgUi::ActivitySnapshot { message_id, activity_type: "COMPACTION".to_owned(), content }
    }
}

/// How a sub-agent ended.
fn ended(run: String, status: &RunStatus, error: Option<String>, interrupt_ids: Vec<String>) -> AgUi {
    match status {
        RunStatus::Finished(_) => AgUi::SubagentFinished { run, outcome: SubOutcome::Success },
        RunStatus::Interrupted | RunStatus::Paused => {
            AgUi::SubagentFinished { run, outcome: SubOutcome::Suspended { interrupt_ids } }
        }
        RunStatus::Cancelled => {
            AgUi::SubagentError { run, message: "it was cancelled".to_owned(), code: "cancelled".to_owned() }
        }
        _ => {
            let message = error.unwrap_or_else(|| "it failed".to_owned());
            AgUi::SubagentError { run, message, code: "failed".to_owned() }
        }
    }
}
