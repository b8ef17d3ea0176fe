//! Anthropic Messages.

use agent::{
    Result,
    llm::{AnthropicCodec, AnthropicProfile, RequestReader},
};
use serde_json::{Map, Value, json};

use super::{Called, Said, Wire, items, text};
use crate::recordings::{Exchange, Frames, provider::provider_of};

#[derive(Debug)]
pub(super) struct AnthropicMessages;

impl Wire for AnthropicMessages {
    fn api(&self) -> &'static str {
        "anthropic-messages"
    }

    fn codec(&self, exchange: &Exchange) -> Result<Box<dyn RequestReader>> {
        let of_table = provider_of(exchange).and_then(|known| known.anthropic);
        let profile =
            of_table.unwrap_or_else(|| AnthropicProfile::compatible(&exchange.provider, "http://server.test"));
        Ok(Box::new(AnthropicCodec::new(exchange.model(), profile)?))
    }

    fn foreign(&self, exchange: &Exchange) -> Option<&'static str> {
        exchange
            .request
            .path
            .contains("/threads/")
            .then_some("a message of an assistant's thread, which is another protocol")
    }

    fn is_error(&self, json: &Value) -> bool {
        json["type"] == "error" || json.get("error").is_some_and(|error| !error.is_null())
    }

    /// A second message begins before the first has ended.
    fn is_broken_off(&self, frames: &Frames) -> bool {
        let mut open = None;
        frames.data.iter().any(|frame| match text(frame, "/type") {
            "message_start" => {
                open.replace(&frame["message"]["id"]).is_some_and(|known| known != &frame["message"]["id"])
            }
            "message_stop" => {
                open = None;
                false
            }
            _ => false,
        })
    }

    fn is_complete(&self, frames: &Frames) -> bool {
        frames.data.iter().any(|frame| frame["type"] == "message_stop" || !text(frame, "/delta/stop_reason").is_empty())
    }

    fn whole(&self, frames: &[Value]) -> Value {
        let (mut whole, mut blocks) = (Map::new(), Vec::new());
        for frame in frames {
            match text(frame, "/type") {
                "message_start" => join(&mut whole, &frame["message"]),
                "content_block_start" => {
                    blocks.push((frame["index"].clone(), frame["content_block"].clone(), String::new()));
                }
                "content_block_delta" => {
                    let block = blocks.iter_mut().rev().find(|(index, ..)| *index == frame["index"]);
                    if let Some((_, block, input)) = block {
                        add(block, input, &frame["delta"]);
                    }
                }
                "message_delta" | "message_stop" => {
                    join(&mut whole, &frame["delta"]);
                    let rest = frame.as_object().into_iter().flatten().filter(|(name, _)| *name != "delta");
                    join(&mut whole, &rest.map(|(name, value)| (name.clone(), value.clone())).collect());
                }
                _ => {}
            }
        }
        let content = blocks.into_iter().map(|(_, mut block, input)| {
            if !input.is_empty() {
                block["input"] = serde_json::from_str(&input).unwrap_or_default();
            }
            block
        });
        whole.insert("content".into(), content.collect());
        Value::Object(whole)
    }

    fn turn(&self, whole: &Value) -> Option<Value> {
        whole["content"].is_array().then(|| json!({"role": "assistant", "content": whole["content"]}))
    }

    fn said(&self, turn: &Value) -> Said {
        let mut said = Said::default();
        for block in items(turn, "/content") {
            match text(block, "/type") {
                "text" => said.text.push_str(text(block, "/text")),
                "thinking" => {
                    said.reasoning.push_str(text(block, "/thinking"));
                    said.more |= !text(block, "/signature").is_empty();
                }
                "tool_use" => said.calls.push(Called {
                    id: text(block, "/id").to_owned(),
                    name: text(block, "/name").to_owned(),
                    arguments: block["input"].clone(),
                }),
                _ => said.more = true,
            }
        }
        said
    }

    fn sent_back(&self, request: &Value) -> Option<Value> {
        items(request, "/messages").get(1).cloned()
    }

    fn beside(&self, whole: &Value) -> Value {
        let fields = whole.as_object().into_iter().flatten();
        fields
            .filter(|(name, _)| !["type", "role"].contains(&name.as_str()))
            .map(|(n, v)| (n.clone(), v.clone()))
            .collect()
    }

    /// The sums exclude the usage of a compaction, and advice from another model.
    fn tokens(&self, whole: &Value) -> Option<u64> {
        let usage = whole.get("usage")?;
        let compactions = items(usage, "/iterations").iter().filter(|part| part["type"] == "compaction");
        let all = compactions.chain([usage]).flat_map(|usage| COUNTS.map(|name| usage[name].as_u64().unwrap_or(0)));
        Some(all.sum())
    }

    fn finish<'a>(&self, whole: &'a Value) -> &'a str {
        text(whole, "/stop_reason")
    }

    fn arguments_are_json(&self) -> bool {
        true
    }
}

const COUNTS: [&str; 4] = ["input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens"];

/// Overlays `more` on the known fields: `usage` field by field.
fn join(whole: &mut Map<String, Value>, more: &Value) {
    for (name, value) in
        more.as_object().into_iter().flatten().filter(|(name, value)| *name != "type" && !value.is_null())
    {
        match (whole.get_mut(name), value) {
            (Some(Value::Object(known)), Value::Object(_)) if name == "usage" => join(known, value),
            _ => drop(whole.insert(name.clone(), value.clone())),
        }
    }
}

fn add(block: &mut Value, input: &mut String, delta: &Value) {
    match text(delta, "/type") {
        "input_json_delta" => input.push_str(text(delta, "/partial_json")),
        "citations_delta" => match &mut block["citations"] {
            Value::Array(citations) => citations.push(delta["citation"].clone()),
            none => *none = json!([delta["citation"]]),
        },
        _ => {
            // Numbers and `null` only describe progress.
            let texts =
                delta.as_object().into_iter().flatten().filter(|(name, more)| *name != "type" && more.is_string());
            for (name, more) in texts {
                let known = block[name].as_str().unwrap_or_default().to_owned();
                block[name] = (known + more.as_str().unwrap_or_default()).into();
            }
        }
    }
}
