//! OpenAI Responses.

use agent::{
    Result,
    llm::{OpenAiResponsesCodec, Profile, RequestReader, conformance::json},
};
use serde_json::{Map, Value};

use super::{Called, Said, Wire, items, text};
use crate::recordings::{Exchange, Frames, provider::provider_of};

#[derive(Debug)]
pub(super) struct OpenAiResponses;

impl Wire for OpenAiResponses {
    fn api(&self) -> &'static str {
        "openai-responses"
    }

    /// The request carries the client's storage setting: the codec adds nothing.
    fn codec(&self, exchange: &Exchange) -> Result<Box<dyn RequestReader>> {
        let of_table = provider_of(exchange).and_then(|known| known.openai);
        let mut profile = of_table.unwrap_or_else(|| Profile::compatible(&exchange.provider, "http://server.test/v1"));
        profile.responses.stateless = false;
        Ok(Box::new(OpenAiResponsesCodec::new(exchange.model(), profile)?))
    }

    fn foreign(&self, exchange: &Exchange) -> Option<&'static str> {
        exchange.request.path.ends_with("/input_tokens").then_some("counting tokens is another API")
    }

    fn is_error(&self, json: &Value) -> bool {
        let names = |value: &Value| value.get("error").is_some_and(|error| !error.is_null());
        names(json) || names(&json["response"]) || json["type"] == "error" || json["status"] == "failed"
    }

    fn is_complete(&self, frames: &Frames) -> bool {
        frames.data.iter().any(is_last)
    }

    /// The last event holds the response; if its list of items is empty, the items are those that
    /// ended individually.
    fn whole(&self, frames: &[Value]) -> Value {
        let last = frames.iter().find(|frame| is_last(frame)).cloned().unwrap_or_default();
        let mut whole = last["response"].clone();
        if items(&whole, "/output").is_empty() {
            let done = frames.iter().filter(|frame| frame["type"] == "response.output_item.done");
            whole["output"] = done.map(|frame| frame["item"].clone()).collect();
        }
        let beside = last.as_object().into_iter().flatten();
        for (name, value) in
            beside.filter(|(name, _)| !["type", "response", "sequence_number"].contains(&name.as_str()))
        {
            whole[name] = value.clone();
        }
        whole
    }

    fn turn(&self, whole: &Value) -> Option<Value> {
        // A background response has no turn until it is complete.
        let is_pending = matches!(text(whole, "/status"), "queued" | "in_progress");
        whole.get("output").filter(|output| output.is_array() && !is_pending).cloned()
    }

    fn said(&self, turn: &Value) -> Said {
        let (mut said, mut reasoning) = (Said::default(), Vec::new());
        for item in items(turn, "") {
            let kind = text(item, "/type");
            match kind {
                "message" if item["role"] == "assistant" => {
                    for part in items(item, "/content") {
                        said.text.push_str(if part["type"] == "output_text" { text(part, "/text") } else { "" });
                        said.more |= part["type"] != "output_text";
                    }
                }
                "reasoning" => {
                    let parts = items(item, "/summary").iter().chain(items(item, "/content"));
                    let texts: Vec<_> = parts.map(|part| text(part, "/text")).filter(|text| !text.is_empty()).collect();
                    reasoning.push(texts.join("\n\n"));
                    said.more = true;
                }
                "function_call" | "custom_tool_call" => {
                    let arguments = if kind == "function_call" { &item["arguments"] } else { &item["input"] };
                    said.calls.push(Called {
                        id: text(item, "/call_id").to_owned(),
                        name: text(item, "/name").to_owned(),
                        arguments: arguments.clone(),
                    });
                }
                "computer_call" => said.calls.push(Called {
                    id: text(item, "/call_id").to_owned(),
                    name: "computer".to_owned(),
                    arguments: as_arguments(item),
                }),
                _ => said.more = true,
            }
        }
        said.reasoning = reasoning.concat();
        said
    }

    fn sent_back(&self, request: &Value) -> Option<Value> {
        let turn = items(request, "/input").get(1..)?.iter();
        let is_result = |item: &&Value| matches!(text(item, "/output"), "done") && !item["call_id"].is_null();
        Some(turn.filter(|item| !is_result(item)).cloned().collect())
    }

    fn turn_differences(&self, sent: &Value, back: &Value) -> Vec<String> {
        json::differences(&as_taken(sent), &as_taken(back))
    }

    fn beside(&self, whole: &Value) -> Value {
        let mut beside = without(whole, &REPEATED);
        if let Some(usage) = beside.get_mut("usage") {
            *usage = Value::Object(without(usage, &COUNTS));
        }
        Value::Object(beside)
    }

    fn finish<'a>(&self, whole: &'a Value) -> &'a str {
        match text(whole, "/incomplete_details/reason") {
            "" => text(whole, "/status"),
            reason => reason,
        }
    }

    fn tokens(&self, whole: &Value) -> Option<u64> {
        whole.pointer("/usage/total_tokens")?.as_u64().filter(|total| *total > 0)
    }
}

/// Returns the fields of a computer call that its executor needs.
fn as_arguments(item: &Value) -> Value {
    let fields = ["action", "actions", "pending_safety_checks"].into_iter();
    let fields = fields.filter_map(|name| Some((name.to_owned(), item.get(name)?.clone())));
    let is_said = |(_, value): &(String, Value)| !value.is_null() && *value != Value::Array(Vec::new());
    Value::Object(fields.filter(is_said).collect())
}

/// Removes sources without an address and empty log probabilities, which are not sent back on
/// purpose: the API's own types reject them.
fn as_taken(turn: &Value) -> Value {
    let mut turn = turn.clone();
    for item in turn.as_array_mut().into_iter().flatten() {
        if let Some(Value::Array(sources)) = item.pointer_mut("/action/sources") {
            sources.retain(|source| source["url"].is_string());
        }
        let content = item.get_mut("content").and_then(Value::as_array_mut).into_iter().flatten();
        for part in content.filter_map(Value::as_object_mut).filter(|part| part.get("logprobs") == Some(&Value::Null)) {
            part.remove("logprobs");
        }
    }
    turn
}

fn without(json: &Value, names: &[&str]) -> Map<String, Value> {
    let fields = json.as_object().into_iter().flatten().filter(|(name, _)| !names.contains(&name.as_str()));
    fields.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// Token counts that [`tokens`](Wire::tokens) checks.
const COUNTS: [&str; 3] = ["input_tokens", "output_tokens", "total_tokens"];

fn is_last(frame: &Value) -> bool {
    matches!(text(frame, "/type"), "response.completed" | "response.incomplete")
}

/// Fields that repeat the request or the items, or only mark the object as a response.
const REPEATED: [&str; 30] = [
    "background",
    "frequency_penalty",
    "incomplete_details",
    "input",
    "instructions",
    "max_output_tokens",
    "max_tool_calls",
    "metadata",
    "object",
    "output",
    "output_text",
    "parallel_tool_calls",
    "presence_penalty",
    "previous_response_id",
    "prompt",
    "prompt_cache_key",
    "prompt_cache_options",
    "prompt_cache_retention",
    "reasoning",
    "safety_identifier",
    "status",
    "store",
    "temperature",
    "text",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
    "truncation",
    "user",
];
