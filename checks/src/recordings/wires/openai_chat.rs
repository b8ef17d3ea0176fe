//! OpenAI Chat Completions.

use agent::{
    Result,
    llm::{OpenAiChatCodec, Profile, RequestReader, conformance::json},
};
use serde_json::{Map, Value, json};

use super::{Called, Said, Wire, items, text};
use crate::recordings::{Exchange, Frames, provider::provider_of};

#[derive(Debug)]
pub(super) struct OpenAiChat;

impl Wire for OpenAiChat {
    fn api(&self) -> &'static str {
        "openai-chat"
    }

    fn codec(&self, exchange: &Exchange) -> Result<Box<dyn RequestReader>> {
        let of_table = provider_of(exchange).and_then(|known| known.openai);
        let mut profile = of_table.unwrap_or_else(|| Profile::compatible(&exchange.provider, "http://server.test/v1"));
        // Fields that a profile omits on purpose, since its server rejects them, are no loss:
        // compare what the codec keeps.
        profile.verbatim = true;
        Ok(Box::new(OpenAiChatCodec::new(exchange.model(), profile)?))
    }

    fn is_error(&self, json: &Value) -> bool {
        let names = |value: &Value| value.get("error").is_some_and(|error| !error.is_null());
        names(json) || items(json, "/choices").iter().any(names)
    }

    fn is_complete(&self, frames: &Frames) -> bool {
        frames.done || frames.data.iter().any(|frame| !text(frame, "/choices/0/finish_reason").is_empty())
    }

    fn whole(&self, frames: &[Value]) -> Value {
        let (mut whole, mut message, mut finish) = (Map::new(), Map::new(), Value::Null);
        for frame in frames {
            for (name, value) in frame.as_object().into_iter().flatten() {
                let is_first = !whole.contains_key(name) || name == "usage";
                if name != "choices" && is_first && !value.is_null() && value != "" {
                    whole.insert(name.clone(), value.clone());
                }
            }
            let Some(choice) = first(items(frame, "/choices")) else { continue };
            choice["delta"].as_object().into_iter().flatten().for_each(|(name, more)| add(&mut message, name, more));
            if !text(choice, "/finish_reason").is_empty() && finish.is_null() {
                finish = choice["finish_reason"].clone();
            }
        }
        message.entry("role").or_insert("assistant".into());
        message.entry("content").or_insert(Value::Null);
        for call in message.get_mut("tool_calls").and_then(Value::as_array_mut).into_iter().flatten() {
            let call = call.as_object_mut().expect("it was made as an object");
            call.remove("index");
            call.entry("type").or_insert("function".into());
        }
        whole.insert("choices".into(), json!([{"index": 0, "message": message, "finish_reason": finish}]));
        Value::Object(whole)
    }

    fn turn(&self, whole: &Value) -> Option<Value> {
        first(items(whole, "/choices"))?.get("message").cloned()
    }

    fn said(&self, turn: &Value) -> Said {
        let mut said = Said::default();
        match &turn["content"] {
            Value::String(text) => said.text.push_str(text),
            parts => {
                for part in items(parts, "") {
                    said.text.push_str(part.as_str().unwrap_or(text(part, "/text")));
                    said.reasoning.extend(items(part, "/thinking").iter().map(|part| text(part, "/text")));
                    said.more |= !part.is_string() && part["type"] != "text" && part["type"] != "thinking";
                }
            }
        }
        let details = items(turn, "/reasoning_details").iter();
        let details: String = details.flat_map(|detail| [text(detail, "/text"), text(detail, "/summary")]).collect();
        let spellings = [text(turn, "/reasoning_content"), text(turn, "/reasoning"), &details];
        said.reasoning.push_str(spellings.into_iter().find(|text| !text.is_empty()).unwrap_or_default());
        said.calls.extend(items(turn, "/tool_calls").iter().map(|call| {
            let is_custom = !text(call, "/custom/name").is_empty();
            let (name, arguments) = if is_custom { ("/custom/name", "/custom/input") } else { FUNCTION };
            let arguments = call.pointer(arguments).filter(|arguments| !arguments.is_null());
            Called {
                id: text(call, "/id").to_owned(),
                name: text(call, name).to_owned(),
                arguments: arguments.cloned().unwrap_or("".into()),
            }
        }));
        if let Some(older) = older_call(turn).filter(|_| said.calls.is_empty()) {
            said.calls.push(Called {
                id: String::new(),
                name: text(older, "/name").to_owned(),
                arguments: older["arguments"].clone(),
            });
        }
        let known = ["role", "content", "reasoning_content", "reasoning", "tool_calls"];
        let others = turn.as_object().into_iter().flatten().filter(|(name, _)| !known.contains(&name.as_str()));
        said.more |= others.into_iter().any(|(_, value)| {
            [Value::is_string, Value::is_array, Value::is_object].iter().any(|is| is(value))
                && !["\"\"", "[]", "{}"].contains(&value.to_string().as_str())
        });
        said
    }

    /// Adds the transcript of a spoken turn, and separates thinking from text for servers that leave
    /// it there, up to `</think>`.
    fn meant(&self, exchange: &Exchange, turn: &Value) -> Said {
        let mut said = self.said(turn);
        if said.text.is_empty() {
            said.text.push_str(text(turn, "/audio/transcript"));
        }
        let has_tags =
            provider_of(exchange).and_then(|known| known.openai).is_some_and(|profile| profile.thinking_tags);
        if !has_tags || !said.reasoning.is_empty() {
            return said;
        }
        let all = said.text.trim_start();
        let (thinking, text) = match (all.strip_prefix("<think>"), said.text.split_once("</think>")) {
            (Some(open), None) => (open, ""),
            (Some(open), Some((_, text))) => (open.split("</think>").next().unwrap_or_default(), text),
            (None, Some((thinking, text))) => (thinking, text),
            (None, None) => return said,
        };
        let (thinking, text) = (thinking.to_owned(), text.trim_start().to_owned());
        said.more |= thinking.is_empty() && text.is_empty();
        (said.reasoning, said.text) = (thinking, text);
        said
    }

    fn sent_back(&self, request: &Value) -> Option<Value> {
        items(request, "/messages").get(1).cloned()
    }

    /// Returns `None` also if the reported parts do not add up to the total.
    fn tokens(&self, whole: &Value) -> Option<u64> {
        let count = |name: &str| whole.pointer(&format!("/usage/{name}")).and_then(Value::as_u64);
        let (total, sum) = (count("total_tokens")?, count("prompt_tokens")? + count("completion_tokens")?);
        let reasoning = count("completion_tokens_details/reasoning_tokens").unwrap_or(0);
        (total == sum || total == sum + reasoning).then_some(total)
    }

    /// Calls without ids get some: their results must refer to them. A call of the API's older form
    /// is sent back in the newer one, and speech by its id.
    fn turn_differences(&self, sent: &Value, back: &Value) -> Vec<String> {
        let mut sent = sent.clone();
        for (at, call) in sent.get_mut("tool_calls").and_then(Value::as_array_mut).into_iter().flatten().enumerate() {
            if text(call, "/id").is_empty() {
                call["id"] = back["tool_calls"][at]["id"].clone();
            }
        }
        let older = older_call(&sent).filter(|_| items(&sent, "/tool_calls").is_empty()).cloned();
        // Some servers add an empty one.
        let speech = sent.pointer("/audio/id").filter(|_| !text(&sent, "/audio/data").is_empty()).cloned();
        if let Some(turn) = sent.as_object_mut().filter(|_| older.is_some() || speech.is_some()) {
            turn.retain(|name, value| !value.is_null() && (name != "function_call" || older.is_none()));
            if let Some(function) = older {
                let id = back["tool_calls"][0]["id"].clone();
                turn.insert("tool_calls".into(), json!([{"id": id, "type": "function", "function": function}]));
            }
            if let Some(id) = speech {
                turn.insert("audio".into(), json!({"id": id}));
            }
        }
        json::differences(&sent, back)
    }

    /// Removes the placeholder between results and the next user message, which Mistral's servers
    /// require: see the rules of the wires.
    fn normalise_request(&self, request: &mut Value) {
        let Some(messages) = request.get_mut("messages").and_then(Value::as_array_mut) else { return };
        let placeholder = json!({"role": "assistant", "content": "[empty]"});
        let is_between = |at: usize, messages: &[Value]| {
            messages[at] == placeholder
                && at > 0
                && messages[at - 1]["role"] == "tool"
                && messages.get(at + 1).is_some_and(|next| next["role"] == "user")
        };
        let placed: Vec<_> = (0..messages.len()).filter(|at| is_between(*at, messages)).collect();
        placed.into_iter().rev().for_each(|at| drop(messages.remove(at)));
    }

    fn finish<'a>(&self, whole: &'a Value) -> &'a str {
        first(items(whole, "/choices")).map_or("", |choice| text(choice, "/finish_reason"))
    }

    /// Reasoning, content and calls are fields of one object.
    fn has_order(&self) -> bool {
        false
    }
}

/// Returns the call in the API's older form. Some servers repeat the newer form's calls there, or an
/// empty one.
fn older_call(turn: &Value) -> Option<&Value> {
    turn.get("function_call").filter(|older| !text(older, "/name").is_empty())
}

const FUNCTION: (&str, &str) = ("/function/name", "/function/arguments");

/// Returns choice 0: servers without numbering mean the first.
fn first(choices: &[Value]) -> Option<&Value> {
    choices.iter().find(|choice| choice["index"].as_u64().unwrap_or(0) == 0)
}

/// Adds one field of a delta.
fn add(message: &mut Map<String, Value>, name: &str, more: &Value) {
    match (name, more) {
        (_, Value::Null) => {}
        // Bookkeeping of deltas, which no whole message has.
        ("token_id", _) => {}
        ("content", _) => add_content(message.entry(name).or_insert(Value::Null), more),
        ("tool_calls", Value::Array(calls)) => {
            let known = message.entry(name).or_insert(json!([]));
            if let Value::Array(known) = known {
                calls.iter().for_each(|call| add_call(known, call));
            }
            if known == &json!([]) {
                message.remove(name);
            }
        }
        _ => join(message.entry(name).or_insert(Value::Null), name, more),
    }
}

/// Adds to a content: a text, or a list of parts. Text after a list belongs to the list.
fn add_content(known: &mut Value, more: &Value) {
    if !known.is_array() && !more.is_array() {
        return join(known, "content", more);
    }
    let parts = |content: Value| match content {
        Value::Array(parts) => parts,
        Value::String(text) if !text.is_empty() => vec![json!({"type": "text", "text": text})],
        _ => Vec::new(),
    };
    let mut all = parts(known.take());
    parts(more.clone()).into_iter().for_each(|part| add_part(&mut all, part));
    *known = all.into();
}

/// Adds a part, which extends the previous one if both are texts or both are thinking.
fn add_part(parts: &mut Vec<Value>, part: Value) {
    let is_plain = |item: &Value| item["type"] == "text" && item.as_object().is_some_and(|item| item.len() == 2);
    let known = parts.last_mut().filter(|last| last["type"] == part["type"]);
    let Some(last) = known.filter(|_| matches!(text(&part, "/type"), "text" | "thinking")) else {
        return parts.push(part);
    };
    for (name, more) in part.as_object().into_iter().flatten() {
        match (&mut last[name.as_str()], more) {
            (Value::Array(texts), Value::Array(more)) if name == "thinking" => {
                for item in more {
                    match texts.last_mut().filter(|last| is_plain(last) && is_plain(item)) {
                        Some(last) => join(&mut last["text"], "text", &item["text"]),
                        None => texts.push(item.clone()),
                    }
                }
            }
            (known, more) => join(known, name, more),
        }
    }
}

fn add_call(calls: &mut Vec<Value>, delta: &Value) {
    let (id, name) = (text(delta, "/id"), text(delta, "/function/name"));
    let goes_on = |call: &&mut Value| {
        let begun_anew = !name.is_empty() && !text(call, "/function/arguments").is_empty();
        match text(call, "/id") {
            "" => !begun_anew,
            known => id.is_empty() || id == known,
        }
    };
    let known = calls.iter_mut().rev().find(|call| call["index"] == delta["index"]).filter(goes_on);
    let call = match known {
        Some(call) => call,
        None => {
            calls.push(json!({"id": "", "function": {"name": "", "arguments": ""}}));
            calls.last_mut().expect("it was just pushed")
        }
    };
    join(call, "", delta);
}

/// Fields that every piece repeats.
const REPEATED: [&str; 8] = ["id", "type", "role", "name", "format", "index", "channel", "signature"];

fn join(known: &mut Value, name: &str, more: &Value) {
    match (known, more) {
        (_, Value::Null) => {}
        (Value::String(known), Value::String(more)) if !REPEATED.contains(&name) => known.push_str(more),
        (Value::Object(known), Value::Object(more)) => {
            more.iter().for_each(|(name, more)| join(known.entry(name).or_insert(Value::Null), name, more));
        }
        (Value::Array(known), Value::Array(more)) => more.iter().for_each(|item| {
            let same = |known: &&mut Value| {
                !item["index"].is_null() && known["index"] == item["index"] && known["type"] == item["type"]
            };
            match known.iter_mut().find(same) {
                Some(known) => join(known, "", item),
                None => known.push(item.clone()),
            }
        }),
        (Value::String(known), Value::String(more)) if more.is_empty() || !known.is_empty() => {}
        (known, more) => known.clone_from(more),
    }
}
