//! Transcript of a front end's messages.

use serde_json::{Value, json};

use crate::{
    ag_ui::event::{AgUi, AgUiEvent},
    speech::own_id,
};

/// Messages of the front end, in the protocol's form: those that it sent, and those that it
/// received since.
#[derive(Debug, Default)]
pub(super) struct Transcript(Vec<Value>);

impl Transcript {
    pub(super) fn new(messages: Vec<Value>) -> Self {
        Self(messages)
    }

    /// Applies an event that was sent to the front end.
    pub(super) fn take(&mut self, event: &AgUiEvent) {
        let owner = event.subagent_run_id.as_deref();
        match &event.kind {
            AgUi::TextMessageStart { message_id, role } | AgUi::ReasoningMessageStart { message_id, role } => {
                let message = self.message(message_id, role, owner);
                message["content"] = "".into();
            }
            AgUi::TextMessageContent { message_id, delta } | AgUi::ReasoningMessageContent { message_id, delta } => {
                if let Some(message) = self.find(message_id) {
                    append(&mut message["content"], delta);
                }
            }
            AgUi::ReasoningEncryptedValue { entity_id, encrypted_value, .. } => {
                if let Some(message) = self.find(entity_id) {
                    message["encryptedValue"] = encrypted_value.as_str().into();
                }
            }
            AgUi::ToolCallStart { tool_call_id, tool_call_name, parent_message_id } => {
                let function = json!({"name": tool_call_name, "arguments": ""});
                let call = json!({"id": tool_call_id, "type": "function", "function": function});
                let message = self.message(parent_message_id, "assistant", owner);
                match &mut message["toolCalls"] {
                    Value::Array(calls) => calls.push(call),
                    none => *none = json!([call]),
                }
            }
            AgUi::ToolCallArgs { tool_call_id, delta } => {
                let calls = self.0.iter_mut().filter_map(|message| message.get_mut("toolCalls")?.as_array_mut());
                if let Some(call) = calls.flatten().rfind(|call| call["id"] == **tool_call_id) {
                    append(&mut call["function"]["arguments"], delta);
                }
            }
            AgUi::ToolCallResult { message_id, tool_call_id, content, role } => {
                let message = self.message(message_id, role, owner);
                message["toolCallId"] = tool_call_id.as_str().into();
                message["content"] = content.as_str().into();
            }
            AgUi::ActivitySnapshot { message_id, activity_type, content } => {
                let message = self.message(message_id, "activity", owner);
                message["activityType"] = activity_type.as_str().into();
                message["content"] = content.clone();
            }
            _ => {}
        }
    }

    /// Removes these messages and calls, and returns the remaining messages.
    pub(super) fn without(&mut self, messages: &[String], calls: &[String]) -> Vec<Value> {
        let is_one = |ids: &[String], id: &Value| id.as_str().is_some_and(|id| ids.iter().any(|one| one == id));
        self.0.retain(|message| !is_one(messages, &message["id"]) && !is_one(calls, &message["toolCallId"]));
        self.0.clone()
    }

    /// Returns the id under which the front end knows the newest call with this id.
    pub(super) fn call(&self, own: &str) -> Option<String> {
        let calls = self.0.iter().filter_map(|message| message.get("toolCalls")?.as_array());
        let mut ids = calls.flatten().filter_map(|call| call["id"].as_str());
        ids.rfind(|id| *id == own || own_id(id) == own).map(str::to_owned)
    }

    fn find(&mut self, id: &str) -> Option<&mut Value> {
        self.0.iter_mut().rfind(|message| message["id"] == *id)
    }

    /// Returns the message of this id; creates it if missing.
    fn message(&mut self, id: &str, role: &str, owner: Option<&str>) -> &mut Value {
        let at = self.0.iter().rposition(|message| message["id"] == *id).unwrap_or_else(|| {
            let mut message = json!({"id": id, "role": role});
            if let Some(owner) = owner {
                message["subagentRunId"] = owner.into();
            }
            self.0.push(message);
            self.0.len() - 1
        });
        &mut self.0[at]
    }
}

fn append(text: &mut Value, delta: &str) {
    match text {
        Value::String(text) => text.push_str(delta),
        none => *none = delta.into(),
    }
}
