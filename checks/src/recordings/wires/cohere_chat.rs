//! Cohere's Chat, version 2.

use std::collections::BTreeMap;

use agent::{
    Result,
    llm::{CohereCodec, CohereProfile, RequestReader},
};
use serde_json::{Map, Value, json};

use super::{Called, Said, Wire, items, text};
use crate::recordings::{Exchange, Frames, provider::provider_of};

#[derive(Debug)]
pub(super) struct CohereChat;

impl Wire for CohereChat {
    fn api(&self) -> &'static str {
        "cohere-chat"
    }

    fn codec(&self, exchange: &Exchange) -> Result<Box<dyn RequestReader>> {
        let of_table = provider_of(exchange).and_then(|known| known.cohere);
        let profile =
            of_table.unwrap_or_else(|| CohereProfile::compatible(&exchange.provider, "http://server.test/v2"));
        Ok(Box::new(CohereCodec::new(exchange.model(), profile)?))
    }

    fn foreign(&self, exchange: &Exchange) -> Option<&'static str> {
        let is_older = exchange.request.json.as_ref().is_some_and(|body| body.get("message").is_some());
        is_older.then_some("an older version of Cohere's API is not spoken")
    }

    fn is_error(&self, json: &Value) -> bool {
        json["message"].is_string() || !json["error"].is_null() || !json["delta"]["error"].is_null()
    }

    fn is_complete(&self, frames: &Frames) -> bool {
        frames.data.iter().any(|frame| frame["type"] == "message-end")
    }

    fn whole(&self, frames: &[Value]) -> Value {
        let (mut message, mut end, mut id) = (json!({"role": "assistant"}), Value::Null, Value::Null);
        let (mut plan, mut citations) = (String::new(), Vec::new());
        let (mut content, mut calls) = (BTreeMap::new(), BTreeMap::new());
        for frame in frames {
            let (said, index) = (&frame["delta"]["message"], frame["index"].as_u64().unwrap_or(0));
            match text(frame, "/type") {
                "message-start" => id = frame["id"].clone(),
                "content-start" => drop(content.insert(index, said["content"].clone())),
                "content-delta" => grow(content.get_mut(&index), &said["content"], &["/text", "/thinking"]),
                "tool-plan-delta" => plan.push_str(text(said, "/tool_plan")),
                "tool-call-start" => drop(calls.insert(index, said["tool_calls"].clone())),
                "tool-call-delta" => grow(calls.get_mut(&index), &said["tool_calls"], &["/function/arguments"]),
                "citation-start" => citations.push(said["citations"].clone()),
                "message-end" => end = frame["delta"].clone(),
                _ => {}
            }
        }
        let list = |items: BTreeMap<u64, Value>| items.into_values().collect::<Vec<_>>();
        for (name, items) in [("content", list(content)), ("tool_calls", list(calls)), ("citations", citations)] {
            if !items.is_empty() {
                message[name] = items.into();
            }
        }
        if !plan.is_empty() {
            message["tool_plan"] = plan.into();
        }
        json!({"id": id, "message": message, "finish_reason": end["finish_reason"], "usage": end["usage"]})
    }

    fn turn(&self, whole: &Value) -> Option<Value> {
        whole.get("message").cloned()
    }

    fn said(&self, turn: &Value) -> Said {
        let mut said = Said { reasoning: text(turn, "/tool_plan").to_owned(), ..Said::default() };
        match &turn["content"] {
            Value::String(text) => said.text.push_str(text),
            parts => items(parts, "").iter().for_each(|part| {
                said.text.push_str(text(part, "/text"));
                said.reasoning.push_str(text(part, "/thinking"));
            }),
        }
        said.calls.extend(items(turn, "/tool_calls").iter().map(|call| Called {
            id: text(call, "/id").to_owned(),
            name: text(call, "/function/name").to_owned(),
            arguments: call["function"]["arguments"].clone(),
        }));
        said
    }

    fn sent_back(&self, request: &Value) -> Option<Value> {
        items(request, "/messages").get(1).cloned()
    }

    /// Citation sources given to the model must be in the response.
    fn beside(&self, whole: &Value) -> Value {
        let beside: Map<_, _> = ["usage", "logprobs"]
            .into_iter()
            .filter_map(|name| Some((name.to_owned(), whole.get(name)?.clone())))
            .collect();
        beside.into()
    }

    fn tokens(&self, whole: &Value) -> Option<u64> {
        let tokens = whole.pointer("/usage/tokens")?;
        Some(tokens["input_tokens"].as_u64()? + tokens["output_tokens"].as_u64()?)
    }

    fn finish<'a>(&self, whole: &'a Value) -> &'a str {
        text(whole, "/finish_reason")
    }

    /// The plan, the contents and the calls are fields of one object.
    fn has_order(&self) -> bool {
        false
    }
}

/// Appends the texts of `more` at these paths to those of `known`.
fn grow(known: Option<&mut Value>, more: &Value, places: &[&str]) {
    let Some(known) = known else { return };
    for place in places {
        if let Some(Value::String(known)) = known.pointer_mut(place) {
            known.push_str(text(more, place));
        }
    }
}
