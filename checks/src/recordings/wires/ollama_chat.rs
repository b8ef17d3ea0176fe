//! Ollama's native chat API.

use agent::{
    Result,
    llm::{OllamaCodec, OllamaProfile, RequestReader},
};
use serde_json::{Map, Value, json};

use super::{Called, Said, Wire, items, text};
use crate::recordings::{Exchange, Frames, provider::provider_of};

#[derive(Debug)]
pub(super) struct OllamaChat;

impl Wire for OllamaChat {
    fn api(&self) -> &'static str {
        "ollama-chat"
    }

    fn codec(&self, exchange: &Exchange) -> Result<Box<dyn RequestReader>> {
        let of_table = provider_of(exchange).and_then(|known| known.ollama);
        let mut profile =
            of_table.unwrap_or_else(|| OllamaProfile::compatible(&exchange.provider, "http://server.test"));
        // The recorded clients left truncation of long prompts to the server.
        profile.truncate = None;
        Ok(Box::new(OllamaCodec::new(exchange.model(), profile)?))
    }

    fn is_error(&self, json: &Value) -> bool {
        !json["error"].is_null()
    }

    fn has_lines(&self) -> bool {
        true
    }

    fn is_complete(&self, frames: &Frames) -> bool {
        frames.data.iter().any(|frame| frame["done"] == true)
    }

    fn whole(&self, frames: &[Value]) -> Value {
        let mut whole = frames.iter().find(|frame| frame["done"] == true).cloned().unwrap_or_default();
        let all = |place: &str| frames.iter().map(|frame| text(frame, place)).collect::<String>();
        let mut message = json!({"role": "assistant", "content": all("/message/content")});
        let thinking = all("/message/thinking");
        if !thinking.is_empty() {
            message["thinking"] = thinking.into();
        }
        let calls: Vec<_> = frames.iter().flat_map(|frame| items(frame, "/message/tool_calls")).cloned().collect();
        if !calls.is_empty() {
            message["tool_calls"] = calls.into();
        }
        whole["message"] = message;
        whole
    }

    fn turn(&self, whole: &Value) -> Option<Value> {
        whole.get("message").cloned()
    }

    fn said(&self, turn: &Value) -> Said {
        let call = |call: &Value| Called {
            id: text(call, "/id").to_owned(),
            name: text(call, "/function/name").to_owned(),
            arguments: call["function"]["arguments"].clone(),
        };
        Said {
            text: text(turn, "/content").to_owned(),
            reasoning: text(turn, "/thinking").to_owned(),
            calls: items(turn, "/tool_calls").iter().map(call).collect(),
            more: false,
        }
    }

    fn sent_back(&self, request: &Value) -> Option<Value> {
        items(request, "/messages").get(1).cloned()
    }

    /// Durations and creation time.
    fn beside(&self, whole: &Value) -> Value {
        let is_beside = |name: &str| name.ends_with("_duration") || matches!(name, "created_at" | "logprobs");
        let fields = whole.as_object().into_iter().flatten().filter(|(name, _)| is_beside(name));
        Value::Object(fields.map(|(name, value)| (name.clone(), value.clone())).collect::<Map<_, _>>())
    }

    fn tokens(&self, whole: &Value) -> Option<u64> {
        Some(whole["prompt_eval_count"].as_u64()? + whole["eval_count"].as_u64()?)
    }

    /// Streaming is the default.
    fn normalise_request(&self, request: &mut Value) {
        if let Some(fields) = request.as_object_mut().filter(|fields| fields.get("stream") == Some(&Value::Bool(true)))
        {
            fields.remove("stream");
        }
    }

    fn finish<'a>(&self, whole: &'a Value) -> &'a str {
        text(whole, "/done_reason")
    }

    /// Reasoning, text and calls are fields of one object.
    fn has_order(&self) -> bool {
        false
    }

    fn arguments_are_json(&self) -> bool {
        true
    }
}
