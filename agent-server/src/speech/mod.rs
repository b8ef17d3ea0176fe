//! Ordered stream of a run's content, on which the protocols of front ends are built.
//!
//! Events report an answer in chunks, as a whole, or in chunks that the final message contradicts.
//! [`MessageStream`] turns them into a consistent stream: every item has an id, begins before it
//! continues, and ends with its answer. Content that turns out to be invalid is
//! [retracted](What::Retracted). An encoder of a protocol converts each speech event independently.

mod answer;
mod ending;
mod ids;
mod lane;

use std::{collections::HashMap, sync::Arc};

use agent::{Event, EventKind, Question, ToolOutput, Usage, journal::RunStatus, message::Message};
use serde_json::Value;

pub use self::ending::Ending;
use self::{answer::Answer, ids::Ids, lane::AgentPath};
pub(crate) use self::{
    ending::{CLIENT_TOOL, code},
    ids::own_id,
};

/// MessageStream event.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Said {
    /// Sub-agent that emitted it: one invocation of it. None for the root run.
    pub(crate) lane: Option<Arc<str>>,
    pub(crate) what: What,
}

/// Payload of a speech event. Ids of messages, thoughts and calls are unique over all lanes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum What {
    /// A sub-agent begins or resumes in a new lane.
    LaneStarted {
        name: Arc<str>,
        parent: Option<Arc<str>>,
        call: Option<String>,
    },
    /// The sub-agent ended or is suspended. All its items and lanes have ended.
    LaneEnded {
        status: RunStatus,
        error: Option<String>,
        asked: Vec<Question>,
    },
    /// The model is about to be called.
    Step(u32),
    TextStarted {
        message: String,
    },
    Text {
        message: String,
        delta: String,
    },
    TextEnded {
        message: String,
    },
    ThoughtStarted {
        thought: String,
    },
    Thought {
        thought: String,
        delta: String,
    },
    /// Encrypted reasoning that only the provider can read.
    ThoughtSealed {
        thought: String,
        sealed: String,
    },
    ThoughtEnded {
        thought: String,
    },
    CallStarted {
        call: String,
        name: Arc<str>,
        message: String,
    },
    Arguments {
        call: String,
        delta: String,
    },
    CallEnded {
        call: String,
    },
    /// The result of a call, which may have begun in an earlier stream.
    CallAnswered {
        call: String,
        name: Arc<str>,
        output: ToolOutput,
    },
    /// The model's answer is complete, and all its items have ended.
    AnswerEnded {
        message: String,
        usage: Usage,
    },
    /// These items were streamed, but are not part of the final answer. They have ended.
    Retracted {
        messages: Vec<String>,
        calls: Vec<String>,
    },
    /// A user message was added to the run.
    Heard {
        message: String,
        text: String,
    },
    /// A tool reports its progress.
    Progress {
        call: String,
        progress: Value,
    },
    /// Any other event.
    Notice(EventKind),
}

/// Converter of a run's events into speech events.
#[derive(Debug, Default)]
pub(crate) struct MessageStream {
    /// Open lanes by run, including the root run's.
    lanes: HashMap<Arc<str>, AgentPath>,
    /// Number of lanes that each sub-agent's run has had.
    told: HashMap<Arc<str>, u32>,
    ids: Ids,
    /// The call that started a sub-agent, by its run.
    started_by: HashMap<Arc<str>, String>,
}

impl MessageStream {
    /// Converts an event.
    pub(crate) fn event(&mut self, event: &Event) -> Vec<Said> {
        let mut said = Vec::new();
        let run = &event.ids.run_id;
        if let EventKind::RunEnded { status, error, .. } = &event.kind {
            self.end(run, status, error.as_deref(), &mut said);
            return said;
        }
        self.open(event, &mut said);
        let Some(lane) = self.lanes.get_mut(run) else { return said };
        let id = lane.id.clone();
        let mut say = |what| said.push(Said { lane: id.clone(), what });
        match &event.kind {
            EventKind::RunStarted | EventKind::RunResumed => {}
            EventKind::StepStarted { step } => {
                lane.step = *step;
                lane.drop_answer(&mut self.ids, &mut say);
                say(What::Step(*step));
            }
            EventKind::Chunk(chunk) => lane.answer(event, &mut self.ids).chunk(chunk, &mut self.ids, &mut say),
            EventKind::ModelAnswered { step, message, usage } => {
                lane.step = *step;
                lane.answer(event, &mut self.ids).complete(message, &mut self.ids, &mut say);
                let answer = lane.answer.take();
                let message = answer.map(Answer::into_id).unwrap_or_default();
                say(What::AnswerEnded { message, usage: *usage });
            }
            EventKind::ToolAnswered { call_id, name, output } => {
                let call = self.ids.call(id.as_deref(), call_id);
                if let Some(answer) = &mut lane.answer {
                    answer.end_call(&call, &mut say);
                }
                say(What::CallAnswered { call, name: name.clone(), output: output.clone() });
            }
            EventKind::ToolProgress { call_id, progress } => {
                let call = self.ids.call(id.as_deref(), call_id);
                say(What::Progress { call, progress: progress.clone() });
            }
            EventKind::SubAgentStarted { call_id, run, .. } => {
                self.started_by.insert(run.clone(), self.ids.call(id.as_deref(), call_id));
            }
            EventKind::Asked(question) => lane.asked.push(question.clone()),
            // The client that started the run already has its first messages.
            EventKind::Message(message @ Message::User(_)) if lane.step > 0 || id.is_some() => {
                let heard = self.ids.fresh(&format!("{run}-heard"));
                say(What::Heard { message: heard, text: message.text() });
            }
            EventKind::Message(_)
            | EventKind::ToolStarted { .. }
            | EventKind::ToolsAnswered { .. }
            | EventKind::Answered { .. }
            | EventKind::StateChanged { .. } => {}
            other => say(What::Notice(other.clone())),
        }
        said
    }

    /// Ends all open items.
    pub(crate) fn close(&mut self) -> Vec<Said> {
        let mut said = Vec::new();
        self.end_where(|_| true, &RunStatus::Cancelled, &mut said);
        said
    }

    /// Opens the event's lane, if it is not open.
    fn open(&mut self, event: &Event, said: &mut Vec<Said>) {
        let ids = &event.ids;
        if self.lanes.contains_key(&ids.run_id) {
            return;
        }
        if ids.depth == 0 {
            self.lanes.insert(ids.run_id.clone(), AgentPath::default());
            return;
        }
        let told = self.told.entry(ids.run_id.clone()).or_default();
        *told += 1;
        let id = match told {
            1 => ids.run_id.clone(),
            again => format!("{}~{again}", ids.run_id).into(),
        };
        let above = ids.parent_run_id.as_ref().and_then(|run| self.lanes.get(run));
        let parent = above.and_then(|lane| lane.id.clone());
        let call = self.started_by.get(&ids.run_id).cloned();
        let lane = AgentPath { id: Some(id.clone()), above: ids.parent_run_id.clone(), ..AgentPath::default() };
        self.lanes.insert(ids.run_id.clone(), lane);
        said.push(Said { lane: Some(id), what: What::LaneStarted { name: ids.agent.clone(), parent, call } });
    }

    /// Ends a run's lane and those of all its descendants.
    fn end(&mut self, run: &Arc<str>, status: &RunStatus, error: Option<&str>, said: &mut Vec<Said>) {
        if !self.lanes.contains_key(run) {
            return;
        }
        self.end_where(|lane| lane.above.as_ref() == Some(run), &RunStatus::Cancelled, said);
        if let Some(lane) = self.lanes.remove(run) {
            lane.end(status.clone(), error.map(str::to_owned), said);
        }
    }

    fn end_where(&mut self, which: impl Fn(&AgentPath) -> bool, status: &RunStatus, said: &mut Vec<Said>) {
        loop {
            let run = self.lanes.iter().filter(|(_, lane)| which(lane)).map(|(run, _)| run.clone()).min();
            let Some(run) = run else { break };
            self.end(&run, status, None, said);
        }
    }
}
