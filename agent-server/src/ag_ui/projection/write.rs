//! Conversion of one speech event into AG-UI events.

use std::sync::Arc;

use agent::{EventKind, Question, event::CompactionMode, journal::RunStatus};
use serde_json::{Value, json};

use super::{Projection, STATE};
use crate::{
    ag_ui::{
        event::{AgUi, AgUiEvent},
        outcome::SubOutcome,
    },
    conversation::interrupt_id,
    speech::What,
};

/// Output of one lane: a sub-agent's, or the run's own.
pub(super) struct Lane<'a> {
    pub(super) id: Option<Arc<str>>,
    pub(super) told: &'a mut Vec<AgUiEvent>,
}

impl Lane<'_> {
    fn tell(&mut self, event: AgUi) {
        self.told.push(event.of(self.run()));
    }

    /// Adds an event of the run itself.
    fn tell_of_root(&mut self, event: AgUi) {
        self.told.push(event.of_root());
    }

    fn run(&self) -> Option<String> {
        self.id.as_deref().map(str::to_owned)
    }
}

impl Projection {
    /// Converts a speech event.
    pub(super) fn write(&mut self, what: What, lane: &mut Lane<'_>) {
        match what {
            What::LaneStarted { name, parent, call } => begin_lane(&name, parent.as_deref(), call, lane),
            What::LaneEnded { status, error, asked } => self.end_lane(&status, error, &asked, lane),
            What::Step(step) => self.step(step, lane),
            What::TextStarted { message: message_id } => {
                lane.tell(AgUi::TextMessageStart { message_id, role: "assistant".to_owned() });
            }
            What::Text { message: message_id, delta } => lane.tell(AgUi::TextMessageContent { message_id, delta }),
            What::TextEnded { message: message_id } => lane.tell(AgUi::TextMessageEnd { message_id }),
            What::ThoughtStarted { thought: message_id } => {
                lane.tell(AgUi::ReasoningStart { message_id: message_id.clone() });
                lane.tell(AgUi::ReasoningMessageStart { message_id, role: "reasoning".to_owned() });
            }
            What::Thought { thought: message_id, delta } => {
                lane.tell(AgUi::ReasoningMessageContent { message_id, delta });
            }
            What::ThoughtSealed { thought: entity_id, sealed: encrypted_value } => {
                lane.tell(AgUi::ReasoningEncryptedValue { subtype: "message".to_owned(), entity_id, encrypted_value });
            }
            What::ThoughtEnded { thought: message_id } => {
                lane.tell(AgUi::ReasoningMessageEnd { message_id: message_id.clone() });
                lane.tell(AgUi::ReasoningEnd { message_id });
            }
            What::CallStarted { call: tool_call_id, name, message: parent_message_id } => {
                lane.tell(AgUi::ToolCallStart { tool_call_id, tool_call_name: name.to_string(), parent_message_id });
            }
            What::Arguments { call: tool_call_id, delta } => lane.tell(AgUi::ToolCallArgs { tool_call_id, delta }),
            What::CallEnded { call: tool_call_id } => lane.tell(AgUi::ToolCallEnd { tool_call_id }),
            What::CallAnswered { call: tool_call_id, output, .. } => {
                let (message_id, role) = (format!("{tool_call_id}-result"), "tool".to_owned());
                lane.tell(AgUi::ToolCallResult { message_id, tool_call_id, content: output.to_text(), role });
            }
            What::AnswerEnded { usage, .. } => self.usage += usage,
            What::Retracted { messages, calls } => {
                lane.tell_of_root(AgUi::MessagesSnapshot { messages: self.transcript.without(&messages, &calls) });
            }
            What::Heard { message, text } => hear(message, text, lane),
            What::Progress { call, progress } => self.progress(&call, &progress, lane),
            What::Notice(kind) => self.notice(kind, lane),
        }
    }

    fn end_lane(&mut self, status: &RunStatus, error: Option<String>, asked: &[Question], lane: &mut Lane<'_>) {
        if let Some(step_name) = self.steps.remove(&lane.id) {
            lane.tell(AgUi::StepFinished { step_name });
        }
        let run = lane.run().unwrap_or_default();
        let interrupt_ids = asked.iter().map(|question| interrupt_id(question).to_owned()).collect();
        lane.tell_of_root(ended(run, status, error, interrupt_ids));
    }

    fn step(&mut self, step: u32, lane: &mut Lane<'_>) {
        let step_name = format!("step {step}");
        if let Some(step_name) = self.steps.insert(lane.id.clone(), step_name.clone()) {
            lane.tell(AgUi::StepFinished { step_name });
        }
        lane.tell(AgUi::StepStarted { step_name });
    }

    fn progress(&mut self, call: &str, progress: &Value, lane: &mut Lane<'_>) {
        let (message_id, activity_type) = (format!("{call}-progress"), "TOOL_PROGRESS".to_owned());
        lane.tell(if self.activities.insert(message_id.clone()) {
            let content = json!({"toolCallId": call, "progress": progress});
            AgUi::ActivitySnapshot { message_id, activity_type, content }
        } else {
            let patch = json!([{"op": "replace", "path": "/progress", "value": progress}]);
            AgUi::ActivityDelta { message_id, activity_type, patch }
        });
    }

    fn notice(&mut self, kind: EventKind, lane: &mut Lane<'_>) {
        match kind {
            EventKind::Custom { name, value } if name == STATE => {
                if let Some(event) = self.state(value) {
                    lane.tell_of_root(event);
                }
            }
            EventKind::Custom { name, value } => lane.tell(AgUi::Custom { name, value }),
            EventKind::CompactionStarted { mode, trigger } => lane.tell(self.compaction(mode, &trigger)),
            // Named by its kind: an event without content is a string, any other an object with one
            // field.
            kind => match serde_json::to_value(&kind) {
                Ok(Value::Object(fields)) => {
                    fields.into_iter().for_each(|(name, value)| lane.tell(AgUi::Custom { name, value }));
                }
                Ok(Value::String(name)) => lane.tell(AgUi::Custom { name, value: json!({}) }),
                _ => {}
            },
        }
    }

    /// Returns the state event: the whole state the first time, then the differences.
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

fn begin_lane(name: &str, parent: Option<&str>, call: Option<String>, lane: &mut Lane<'_>) {
    lane.tell_of_root(AgUi::SubagentStarted {
        run: lane.run().unwrap_or_default(),
        name: name.to_owned(),
        parent_subagent_run_id: parent.map(str::to_owned),
        parent_tool_call_id: call,
    });
}

/// Adds a whole user message.
fn hear(message_id: String, delta: String, lane: &mut Lane<'_>) {
    lane.tell(AgUi::TextMessageStart { message_id: message_id.clone(), role: "user".to_owned() });
    lane.tell(AgUi::TextMessageContent { message_id: message_id.clone(), delta });
    lane.tell(AgUi::TextMessageEnd { message_id });
}

/// Returns the end event of a sub-agent.
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
