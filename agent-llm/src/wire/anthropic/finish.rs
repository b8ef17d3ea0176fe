//! What an answer becomes when it has ended.

use agent_core::{
    AssistantMessage, Block, Error, FinishReason, ModelResponse,
    message::{Origin, Raw},
};
use serde_json::{Map, Value, value::RawValue};

use super::{read, usage};
use crate::{ProviderError, wire::lenient::Str};

/// What is said of an answer beside its content.
#[derive(Debug, Default)]
pub(super) struct About {
    pub(super) id: String,
    pub(super) model: String,
    stop_reason: String,
    details: Map<String, Value>,
}

impl About {
    /// Keeps fields that nothing here understands; the newer hold.
    pub(super) fn keep(&mut self, fields: &[(Str<'_>, &RawValue)]) {
        for (name, json) in fields {
            if let Ok(value) = serde_json::from_str(json.get()) {
                self.details.insert(name.0.to_string(), value);
            }
        }
    }

    /// Keeps a `usage` object, of which one answer may have several.
    pub(super) fn used(&mut self, json: &RawValue) {
        let Ok(more) = serde_json::from_str(json.get()) else { return };
        if let Value::Object(known) = self.details.entry("usage").or_insert_with(|| Value::Object(Map::new())) {
            usage::merge(known, more);
        }
    }

    pub(super) fn stopped(&mut self, reason: &str) {
        if !reason.is_empty() {
            self.stop_reason = reason.to_owned();
            self.details.insert("stop_reason".into(), reason.into());
        }
    }

    /// True if the answer has said why it ends.
    pub(super) fn has_stopped(&self) -> bool {
        !self.stop_reason.is_empty()
    }
}

/// The response of these blocks, each with the JSON that it was read from.
pub(super) fn respond(blocks: Vec<(String, Block)>, about: About, origin: &Origin) -> ModelResponse {
    let mut json = String::from(r#"{"role":"assistant","content":["#);
    let mut said = Vec::new();
    for (block_json, block) in blocks.into_iter().filter(|(_, block)| !read::says_nothing(block)) {
        if !said.is_empty() {
            json.push(',');
        }
        json += &block_json;
        said.push(block);
    }
    json += "]}";
    let raw = Raw::parse(origin.clone(), json).expect("it was just read as JSON");
    let message = AssistantMessage::from_provider(said, raw);
    let finish = match about.stop_reason.as_str() {
        "" | "end_turn" | "tool_use" if message.has_calls() => FinishReason::ToolCalls,
        "tool_use" => FinishReason::ToolCalls,
        "" | "end_turn" | "stop_sequence" => FinishReason::Stop,
        "max_tokens" | "model_context_window_exceeded" => FinishReason::Length,
        "refusal" => FinishReason::ContentFilter,
        "pause_turn" => FinishReason::Paused,
        other => FinishReason::Other(other.to_owned()),
    };
    let usage = about.details.get("usage").and_then(Value::as_object).map(usage::usage).unwrap_or_default();
    let mut response = ModelResponse::new(message).with_finish(finish).with_usage(usage);
    response.id = Some(about.id).filter(|id| !id.is_empty()).map(Into::into);
    response.model = Some(about.model).filter(|model| !model.is_empty()).map(|model| origin.answered_by(&model));
    response.details = about.details;
    response
}

/// The error that stands in place of an answer, or in the middle of one.
pub(super) fn provider_error(json: &str, origin: &Origin) -> Error {
    ProviderError::from_json(&serde_json::from_str(json).unwrap_or_default()).into_error(origin.provider())
}

pub(super) fn owned(text: Option<Str<'_>>) -> String {
    text.map(|text| text.0.into_owned()).unwrap_or_default()
}
