//! Encoding of a run as session updates.

use std::collections::HashMap;

use agent::{Block, Event, Message, ToolOutput};
use serde_json::{Value, json};

use crate::{
    follow::Teller,
    speech::{Ending, MessageStream, Said, What},
};

/// Encoder of a run as session updates: only content of the agent itself. Work of a sub-agent shows
/// in the result of its call. The protocol cannot retract content, so repeated content follows the
/// earlier one.
#[derive(Debug, Default)]
pub(super) struct Told {
    speech: MessageStream,
    /// Arguments of calls so far.
    arguments: HashMap<String, String>,
}

impl Teller for Told {
    type Told = Value;

    fn start(&mut self) -> Vec<Value> {
        Vec::new()
    }

    fn event(&mut self, event: &Event) -> Vec<Value> {
        let said = self.speech.event(event);
        said.into_iter().filter_map(|said| self.update(said)).collect()
    }

    fn end(&mut self, _: &Ending) -> Vec<Value> {
        self.speech.close().into_iter().filter_map(|said| self.update(said)).collect()
    }
}

impl Told {
    fn update(&mut self, said: Said) -> Option<Value> {
        if said.lane.is_some() {
            return None;
        }
        Some(match said.what {
            What::Text { delta, .. } => chunk("agent_message_chunk", &delta),
            What::Thought { delta, .. } => chunk("agent_thought_chunk", &delta),
            What::CallStarted { call, name, .. } => {
                self.arguments.insert(call.clone(), String::new());
                json!({"sessionUpdate": "tool_call", "toolCallId": call, "title": &*name, "kind": "other", "status": "pending"})
            }
            What::Arguments { call, delta } => {
                self.arguments.entry(call).or_default().push_str(&delta);
                return None;
            }
            What::CallEnded { call } => {
                let arguments = self.arguments.remove(&call).unwrap_or_default();
                json!({"sessionUpdate": "tool_call_update", "toolCallId": call, "status": "in_progress", "rawInput": input(&arguments)})
            }
            What::CallAnswered { call, output, .. } => answered(&call, &output),
            _ => return None,
        })
    }
}

/// Returns the updates of a message from the history.
pub(super) fn before(message: &Message) -> Vec<Value> {
    match message {
        Message::User(_) => vec![chunk("user_message_chunk", &message.text())],
        Message::Assistant(said) => said.blocks().iter().filter_map(block).collect(),
        Message::Tool(result) => {
            let output = ToolOutput::parts(result.parts().to_vec());
            let output = if result.is_error() { output.failed() } else { output };
            vec![answered(result.call_id(), &output)]
        }
        Message::System(_) => Vec::new(),
    }
}

fn block(block: &Block) -> Option<Value> {
    match block {
        Block::Text(text) => Some(chunk("agent_message_chunk", &text.text)),
        Block::Reasoning(thought) => Some(chunk("agent_thought_chunk", &thought.text)),
        Block::ToolCall(call) => Some(json!({
            "sessionUpdate": "tool_call", "toolCallId": &*call.id, "title": &*call.name, "kind": "other", "status": "in_progress",
            "rawInput": input(&call.arguments),
        })),
        _ => None,
    }
}

/// Returns the update with a piece of text.
pub(super) fn chunk(kind: &str, text: &str) -> Value {
    json!({"sessionUpdate": kind, "content": {"type": "text", "text": text}})
}

fn answered(call: &str, output: &ToolOutput) -> Value {
    let status = if output.is_error() { "failed" } else { "completed" };
    let content = json!([{"type": "content", "content": {"type": "text", "text": output.to_text()}}]);
    json!({"sessionUpdate": "tool_call_update", "toolCallId": call, "status": status, "content": content})
}

fn input(arguments: &str) -> Value {
    serde_json::from_str(arguments).unwrap_or_else(|_| arguments.into())
}
