//! What a run says, put in order: the ground that the protocols of front ends stand on.
//!
//! Events tell of an answer in pieces, or whole, or in pieces and then otherwise than they said. [`Speech`] makes one story of them:
//! everything has an id, begins before it goes on, and has ended when the answer has. What was told and does not hold any more is
//! [taken back](What::Retracted). A protocol writes down what it is told here, each piece on its own.

mod answer;
mod ending;
mod ids;
mod lane;

use std::{collections::HashMap, sync::Arc};

use agent::{Event, EventKind, Question, ToolOutput, Usage, journal::RunStatus, message::Message};
use serde_json::Value;

pub use self::ending::Ending;
use self::{answer::Answer, ids::Ids, lane::Lane};
pub(crate) use self::{
    ending::{CLIENT_TOOL, code},
    ids::own_id,
};

/// One piece of the story.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Said {
    /// The sub-agent that says it: one invocation of it. None is the run itself.
    pub(crate) lane: Option<Arc<str>>,
    pub(crate) what: What,
}

/// What is said. Ids of messages, thoughts and calls are unique in the story, over all its lanes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum What {
    /// A sub-agent begins, or goes on: its lane is new.
    LaneStarted {
        name: Arc<str>,
        parent: Option<Arc<str>>,
        call: Option<String>,
    },
    /// It is done, or waits. Everything in it has ended, and every lane below it.
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
    /// Only the provider can read this.
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
    /// The result of a call, which may have begun in an earlier story.
    CallAnswered {
        call: String,
        name: Arc<str>,
        output: ToolOutput,
    },
    /// The model's answer is complete, and everything in it has ended.
    AnswerEnded {
        message: String,
        usage: Usage,
    },
    /// These were told, and were not said after all. They have ended.
    Retracted {
        messages: Vec<String>,
        calls: Vec<String>,
    },
    /// Somebody put a message into the run.
    Heard {
        message: String,
        text: String,
    },
    /// A tool reports how far it is.
    Progress {
        call: String,
        progress: Value,
    },
    /// Something else happened.
    Notice(EventKind),
}

/// Makes one story of a run's events.
#[derive(Debug, Default)]
pub(crate) struct Speech {
    /// The lanes that are open, by their runs, and that of the run itself.
    lanes: HashMap<Arc<str>, Lane>,
    /// How often each sub-agent's run was told of.
    told: HashMap<Arc<str>, u32>,
    ids: Ids,
    /// The call that started a sub-agent, by its run.
    started_by: HashMap<Arc<str>, String>,
}

impl Speech {
    /// What an event adds to the story.
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
            // What a run begins with, whoever started it has.
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

    /// The end of everything that is open.
    pub(crate) fn close(&mut self) -> Vec<Said> {
        let mut said = Vec::new();
        self.end_where(|_| true, &RunStatus::Cancelled, &mut said);
        said
    }

    /// Opens the event's lane, if it is not.
    fn open(&mut self, event: &Event, said: &mut Vec<Said>) {
        let ids = &event.ids;
        if self.lanes.contains_key(&ids.run_id) {
            return;
        }
        if ids.depth == 0 {
            self.lanes.insert(ids.run_id.clone(), Lane::default());
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
        let lane = Lane { id: Some(id.clone()), above: ids.parent_run_id.clone(), ..Lane::default() };
        self.lanes.insert(ids.run_id.clone(), lane);
        said.push(Said { lane: Some(id), what: What::LaneStarted { name: ids.agent.clone(), parent, call } });
    }

    /// A run ended, and with it all its descendants.
    fn end(&mut self, run: &Arc<str>, status: &RunStatus, error: Option<&str>, said: &mut Vec<Said>) {
        if !self.lanes.contains_key(run) {
            return;
        }
        self.end_where(|lane| lane.above.as_ref() == Some(run), &RunStatus::Cancelled, said);
        if let Some(lane) = self.lanes.remove(run) {
            lane.end(status.clone(), error.map(str::to_owned), said);
        }
    }

    fn end_where(&mut self, which: impl Fn(&Lane) -> bool, status: &RunStatus, said: &mut Vec<Said>) {
        loop {
            let run = self.lanes.iter().filter(|(_, lane)| which(lane)).map(|(run, _)| run.clone()).min();
            let Some(run) = run else { break };
            self.end(&run, status, None, said);
        }
    }
}
