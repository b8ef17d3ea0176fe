//! Captured content of prompts, responses and tools: first redacted, then truncated.

use std::{fmt, sync::Arc};

use agent_core::{
    AssistantMessage, Block, Error, ErrorKind, FinishReason, History, Media, Message, Part, SystemMessage, ToolSpecs,
    exact, message::MediaSource,
};
use serde_json::{Map, Value, json};

use super::Capture;

type Redact = dyn Fn(String) -> String + Send + Sync;

/// Capture settings of an application.
#[derive(Clone, Default)]
pub(super) struct Content {
    pub(super) capture: Capture,
    pub(super) bytes: usize,
    pub(super) redact: Option<Arc<Redact>>,
}

/// Remaining bytes of one attribute.
struct Room<'a> {
    content: &'a Content,
    left: usize,
}

impl Content {
    /// Captures a single text.
    pub(super) fn text(&self, text: String) -> String {
        self.room().text(text)
    }

    /// Captures an error's message; the message of a tool counts as content.
    pub(super) fn error(&self, error: &Error) -> Option<String> {
        let by_tool = matches!(error.kind(), ErrorKind::Tool | ErrorKind::InvalidArguments);
        (!by_tool || self.capture != Capture::Off).then(|| self.text(error.to_string()))
    }

    /// Captures any JSON, as text.
    pub(super) fn json(&self, value: &Value) -> String {
        self.room().value(value.clone()).to_string()
    }

    /// Captures the messages of a request, oldest first; if they exceed the limit, the newest are
    /// kept.
    pub(super) fn input(&self, messages: &History) -> String {
        let mut room = self.room();
        let mut newest_first: Vec<_> =
            messages.iter().rev().map_while(|message| (room.left > 0).then(|| room.message(message))).collect();
        newest_first.reverse();
        Value::Array(newest_first).to_string()
    }

    /// Captures a response.
    pub(super) fn output(&self, message: &AssistantMessage, finish: &FinishReason) -> String {
        let parts = self.room().blocks(message);
        json!([{ "role": "assistant", "parts": parts, "finish_reason": finish_reason(finish) }]).to_string()
    }

    /// Captures the answer of a run.
    pub(super) fn answer(&self, text: &str) -> String {
        let parts = json!([{ "type": "text", "content": self.text(text.to_owned()) }]);
        json!([{ "role": "assistant", "parts": parts, "finish_reason": "stop" }]).to_string()
    }

    /// Captures a system prompt.
    pub(super) fn instructions(&self, system: &SystemMessage) -> String {
        let mut room = self.room();
        Value::Array(system.parts().iter().map(|part| room.part(part)).collect()).to_string()
    }

    /// Captures the offered tools.
    pub(super) fn tools(&self, tools: &ToolSpecs) -> String {
        let mut room = self.room();
        let one = |tool: &agent_core::ToolSpec| {
            let description = room.text(tool.description.clone());
            let parameters = room.value(tool.parameters.clone());
            json!({ "type": "function", "name": tool.name, "description": description, "parameters": parameters })
        };
        Value::Array(tools.iter().map(one).collect()).to_string()
    }

    fn room(&self) -> Room<'_> {
        Room { content: self, left: self.bytes }
    }
}

impl Room<'_> {
    /// Redacts the text as a whole, and then truncates it to the remaining bytes.
    fn text(&mut self, text: String) -> String {
        let mut text = match &self.content.redact {
            Some(redact) => redact(text),
            None => text,
        };
        if text.len() > self.left {
            let cut = (0..=self.left).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
            text.truncate(cut);
            text.push_str(" [cut]");
            self.left = 0;
        } else {
            self.left -= text.len();
        }
        text
    }

    /// Captures every text in a value, including field names and numbers, which may be sensitive.
    fn value(&mut self, value: Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.text(text)),
            Value::Array(items) => Value::Array(items.into_iter().map(|item| self.value(item)).collect()),
            Value::Object(fields) => {
                let field = |(name, value)| (self.text(name), self.value(value));
                Value::Object(fields.into_iter().map(field).collect::<Map<_, _>>())
            }
            Value::Number(number) => {
                let (said, shown) = (number.to_string(), self.text(number.to_string()));
                if said == shown { Value::Number(number) } else { Value::String(shown) }
            }
            other => other,
        }
    }

    fn message(&mut self, message: &Message) -> Value {
        let parts = match message {
            Message::System(m) => self.parts(m.parts()),
            Message::User(m) => self.parts(m.parts()),
            Message::Assistant(m) => self.blocks(m),
            Message::Tool(m) => {
                let response = self.text(message.text());
                vec![json!({ "type": "tool_call_response", "id": m.call_id(), "response": response })]
            }
        };
        json!({ "role": message.role(), "parts": parts })
    }

    fn parts(&mut self, parts: &[Part]) -> Vec<Value> {
        parts.iter().map(|part| self.part(part)).collect()
    }

    fn part(&mut self, part: &Part) -> Value {
        match part {
            Part::Text(text) => json!({ "type": "text", "content": self.text(text.text.clone()) }),
            Part::Image(media) => self.media("image", media),
            Part::Document(media) => self.media("document", media),
            _ => json!({ "type": "other" }),
        }
    }

    fn blocks(&mut self, message: &AssistantMessage) -> Vec<Value> {
        let block = |block: &Block| match block {
            Block::Text(text) => json!({ "type": "text", "content": self.text(text.text.clone()) }),
            Block::Reasoning(said) => json!({ "type": "reasoning", "content": self.text(said.text.clone()) }),
            Block::ToolCall(call) => {
                let arguments = match exact::from_str(&call.arguments) {
                    Ok(arguments) => self.value(arguments),
                    Err(_) => Value::String(self.text(call.arguments.clone())),
                };
                json!({ "type": "tool_call", "id": call.id, "name": call.name, "arguments": arguments })
            }
            Block::Server(call) => {
                let (input, output) = (call.input.clone(), call.output.clone());
                json!({
                    "type": "server_tool_call", "id": call.id, "name": call.name,
                    "arguments": input.map(|text| self.text(text)), "result": output.map(|text| self.text(text)),
                })
            }
            Block::Image(media) => self.media("image", media),
            Block::Document(media) => self.media("document", media),
            _ => json!({ "type": "other" }),
        };
        message.blocks().iter().map(block).collect()
    }

    /// Captures the location of media, never their bytes.
    fn media(&mut self, modality: &str, media: &Media) -> Value {
        let mut part = json!({ "modality": modality, "mime_type": media.mime });
        let (kind, field, value) = match &media.source {
            MediaSource::Url(url) => ("uri", "uri", Value::String(self.text(url.clone()))),
            MediaSource::File(id) => ("file", "file_id", Value::String(self.text(id.clone()))),
            MediaSource::Base64(data) => ("blob", "base64_length", data.len().into()),
            _ => ("other", "content", Value::Null),
        };
        (part["type"], part[field]) = (kind.into(), value);
        part
    }
}

/// Returns the finish reason according to the conventions.
pub(super) fn finish_reason(finish: &FinishReason) -> &str {
    match finish {
        FinishReason::Stop => "stop",
        FinishReason::ToolCalls => "tool_call",
        FinishReason::Length => "length",
        FinishReason::ContentFilter => "content_filter",
        FinishReason::Paused => "paused",
        FinishReason::Other(reason) => reason,
        _ => "other",
    }
}

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Content")
            .field("capture", &self.capture)
            .field("bytes", &self.bytes)
            .field("redacts", &self.redact.is_some())
            .finish()
    }
}
