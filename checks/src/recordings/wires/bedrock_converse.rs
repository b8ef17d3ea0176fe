//! Amazon Bedrock Converse.

use agent::{
    Result,
    llm::{BedrockCodec, BedrockProfile, RequestReader},
};
use serde_json::{Map, Value, json};

use super::{Called, Said, Wire, items, text};
use crate::recordings::{Exchange, Frames, provider::provider_of};

#[derive(Debug)]
pub(super) struct BedrockConverse;

impl Wire for BedrockConverse {
    fn api(&self) -> &'static str {
        "bedrock-converse"
    }

    fn codec(&self, exchange: &Exchange) -> Result<Box<dyn RequestReader>> {
        let of_table = provider_of(exchange).and_then(|known| known.bedrock);
        let profile = of_table.unwrap_or_else(|| BedrockProfile::compatible(&exchange.provider, "http://server.test"));
        Ok(Box::new(BedrockCodec::new(exchange.model(), profile)?))
    }

    fn is_error(&self, json: &Value) -> bool {
        json.get("error").is_some() || json.get("__type").is_some()
    }

    fn is_complete(&self, frames: &Frames) -> bool {
        frames.data.iter().any(|frame| !text(frame, "/messageStop/stopReason").is_empty())
    }

    fn whole(&self, frames: &[Value]) -> Value {
        let (mut whole, mut blocks) = (Map::new(), Vec::<(Value, Value, String)>::new());
        for frame in frames {
            let Some((kind, said)) = frame.as_object().and_then(|fields| fields.iter().next()) else { continue };
            let index = &said["contentBlockIndex"];
            match kind.as_str() {
                "contentBlockStart" => blocks.push((index.clone(), said["start"].clone(), String::new())),
                "contentBlockDelta" => {
                    if !blocks.iter().any(|(known, ..)| known == index) {
                        blocks.push((index.clone(), json!({}), String::new()));
                    }
                    let block = blocks.iter_mut().find(|(known, ..)| known == index);
                    if let Some((_, block, input)) = block {
                        add(block, input, &said["delta"]);
                    }
                }
                "messageStop" | "metadata" => {
                    let fields = said.as_object().into_iter().flatten().filter(|(name, _)| *name != "p");
                    whole.extend(fields.map(|(name, value)| (name.clone(), value.clone())));
                }
                _ => {}
            }
        }
        let content: Vec<Value> = blocks.into_iter().map(|(_, block, input)| finished(block, &input)).collect();
        whole.insert("output".into(), json!({"message": {"role": "assistant", "content": content}}));
        Value::Object(whole)
    }

    /// Removes empty texts: the API sends them, and rejects them in requests.
    fn turn(&self, whole: &Value) -> Option<Value> {
        let mut turn = whole.pointer("/output/message")?.clone();
        let content = turn.get_mut("content").and_then(Value::as_array_mut).into_iter();
        content.for_each(|blocks| blocks.retain(|block| block["text"] != ""));
        Some(turn)
    }

    fn said(&self, turn: &Value) -> Said {
        let mut said = Said::default();
        for block in items(turn, "/content") {
            let cited = items(block, "/citationsContent/content");
            said.text.push_str(text(block, "/text"));
            cited.iter().for_each(|part| said.text.push_str(text(part, "/text")));
            said.reasoning.push_str(text(block, "/reasoningContent/reasoningText/text"));
            match &block["toolUse"] {
                call if call.is_object() && call["type"] != "server_tool_use" => said.calls.push(Called {
                    id: text(call, "/toolUseId").to_owned(),
                    name: text(call, "/name").to_owned(),
                    arguments: call["input"].clone(),
                }),
                _ => said.more |= block.get("text").is_none(),
            }
        }
        said
    }

    fn sent_back(&self, request: &Value) -> Option<Value> {
        items(request, "/messages").get(1).cloned()
    }

    fn beside(&self, whole: &Value) -> Value {
        let fields = whole.as_object().into_iter().flatten().filter(|(name, _)| *name != "output");
        fields.map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    fn tokens(&self, whole: &Value) -> Option<u64> {
        whole.pointer("/usage/totalTokens")?.as_u64()
    }

    fn finish<'a>(&self, whole: &'a Value) -> &'a str {
        text(whole, "/stopReason")
    }

    fn arguments_are_json(&self) -> bool {
        true
    }
}

/// Adds a delta to a block, whose arguments are text until it ends.
fn add(block: &mut Value, input: &mut String, delta: &Value) {
    for (kind, more) in delta.as_object().into_iter().flatten() {
        match kind.as_str() {
            "text" => block["text"] = (text(block, "/text").to_owned() + more.as_str().unwrap_or_default()).into(),
            "toolUse" => input.push_str(text(more, "/input")),
            "reasoningContent" => {
                for (name, more) in more.as_object().into_iter().flatten() {
                    let known = match name.as_str() {
                        "redactedContent" => &mut block["reasoningContent"][name.as_str()],
                        name => &mut block["reasoningContent"]["reasoningText"][name],
                    };
                    *known = (known.as_str().unwrap_or_default().to_owned() + more.as_str().unwrap_or_default()).into();
                }
            }
            "citation" => match &mut block["citations"] {
                Value::Array(citations) => citations.push(more.clone()),
                none => *none = json!([more]),
            },
            kind => block[kind]["content"] = more.clone(),
        }
    }
}

fn finished(mut block: Value, input: &str) -> Value {
    if block.get("toolUse").is_some() {
        block["toolUse"]["input"] = serde_json::from_str(input).unwrap_or_else(|_| json!({}));
    }
    match block["citations"].take() {
        Value::Null => {
            block.as_object_mut().into_iter().for_each(|fields| drop(fields.remove("citations")));
            block
        }
        // Citations alone have no content.
        citations => match block["text"].take() {
            Value::Null => json!({"citationsContent": {"citations": citations}}),
            text => json!({"citationsContent": {"citations": citations, "content": [{"text": text}]}}),
        },
    }
}
