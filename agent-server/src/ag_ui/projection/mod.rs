//! Projection of a run's events to AG-UI events.

mod transcript;
mod write;

use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
};

use agent::{Event, Question, Usage};
use serde_json::Value;

use self::{transcript::Transcript, write::Lane};
use super::{
    event::{AgUi, AgUiEvent},
    outcome::{Interrupt, Outcome, TokenUsage},
};
use crate::speech::{CLIENT_TOOL, Ending, MessageStream, Said, code};

/// Name of the event by which an agent shares its state with front ends: a [custom
/// event](agent::EventKind::Custom) with this name, whose value is the current state.
/// [`SharedState`](super::SharedState) emits it.
pub const STATE: &str = "ag-ui.state";

/// Version of the protocol.
pub(super) const VERSION: &str = "1.0";

/// Converts the events of a run into AG-UI events, one event at a time.
///
/// The output keeps the order of the protocol for any input: every item begins before it continues,
/// and ends before the run ends.
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
    speech: MessageStream,
    /// Current step of each lane.
    steps: BTreeMap<Option<Arc<str>>, String>,
    transcript: Transcript,
    state: Option<Value>,
    usage: Usage,
    /// Activities that the front end knows.
    activities: HashSet<String>,
    compactions: u32,
}

impl Projection {
    /// Creates a projection of a run, with the front end's thread and run ids.
    pub fn new(thread: impl Into<String>, run: impl Into<String>) -> Self {
        Self {
            thread: thread.into(),
            run: run.into(),
            speech: MessageStream::default(),
            steps: BTreeMap::new(),
            transcript: Transcript::default(),
            state: None,
            usage: Usage::default(),
            activities: HashSet::new(),
            compactions: 0,
        }
    }

    /// Sets the messages that the front end has, in the protocol's form: when sent content is
    /// retracted, all remaining messages are sent again.
    #[must_use]
    pub fn with_messages(mut self, messages: Vec<Value>) -> Self {
        self.transcript = Transcript::new(messages);
        self
    }

    /// Returns the first events of the run.
    pub fn start(&mut self) -> Vec<AgUiEvent> {
        let (thread_id, run_id) = (self.thread.clone(), self.run.clone());
        vec![AgUi::RunStarted { thread_id, run_id, protocol_version: VERSION.to_owned() }.of_root()]
    }

    /// Returns the AG-UI events of an event of the run.
    pub fn event(&mut self, event: &Event) -> Vec<AgUiEvent> {
        let said = self.speech.event(event);
        self.tell(said)
    }

    /// Ends all open items and the run. No events may follow.
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

    /// Returns the last event.
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

    /// Returns the outcome of a run that waits: calls of the front end's own tools stay open
    /// instead of becoming interrupts. Other questions take precedence; the front end itself sees
    /// which calls are open.
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
            self.write(what, &mut Lane { id: lane, told: &mut told });
            told[from..].iter().for_each(|event| self.transcript.take(event));
        }
        told
    }
}
