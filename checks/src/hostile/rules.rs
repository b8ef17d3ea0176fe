//! Documented rules of providers about requests, written independently of the wires. The sources
//! are the providers' API references and the messages of their refusals.

use std::collections::BTreeSet;

use agent::llm::conformance::json::{items, text};
use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::Value;

use super::families::Family;

/// A call in a request.
pub(super) struct Call {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) arguments: Value,
    /// True if a result of the next messages answers it.
    pub(super) is_answered: bool,
}

/// Rules of all providers: names, arguments, results, schemas, images.
pub(super) fn common(family: &Family, body: &Value) -> Vec<String> {
    let mut broken = Vec::new();
    let mut say = |fine: bool, rule: &str| {
        if !fine {
            broken.push(rule.to_owned());
        }
    };
    for call in (family.calls)(body) {
        say(is_name(&call.name), "a call has a name of other characters than letters, digits, '_' and '-'");
        say(call.is_answered, "a call has no result");
        let arguments = match &call.arguments {
            Value::String(text) => serde_json::from_str(text).unwrap_or(Value::Null),
            other => other.clone(),
        };
        say(arguments.is_object(), "the arguments of a call are not an object");
    }
    for (name, schema) in (family.tools)(body) {
        say(is_name(&name), "a tool has a name of other characters");
        broken_schema(&schema).into_iter().for_each(|rule| say(false, rule));
    }
    for (mime, data) in images(body) {
        let known = kind_of(&data);
        say(known == Some(mime.as_str()), "an image has another type than its bytes");
    }
    broken
}

fn is_name(name: &str) -> bool {
    (1..=64).contains(&name.len()) && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c))
}

fn broken_schema(schema: &Value) -> Vec<&'static str> {
    let mut broken = Vec::new();
    if schema["type"] != "object" {
        broken.push("a schema has no type 'object' at its root");
    }
    if ["anyOf", "oneOf", "allOf", "enum", "not", "$ref", "const"].iter().any(|word| schema.get(*word).is_some()) {
        broken.push("a schema has a combination or a reference at its root");
    }
    every(schema, &mut |at| {
        let wrong = |keyword: &str, is: fn(&Value) -> bool| at.get(keyword).is_some_and(|value| !is(value));
        if wrong("exclusiveMinimum", Value::is_number) || wrong("exclusiveMaximum", Value::is_number) {
            broken.push("a schema has a boolean bound of draft 4");
        }
        if wrong("items", |items| items.is_object() || items.is_boolean()) || wrong("required", Value::is_array) {
            broken.push("a schema has 'items' or 'required' of an older draft");
        }
        if wrong("properties", Value::is_object) {
            broken.push("a schema has 'properties' that are not an object");
        }
        if wrong("enum", |values| values.as_array().is_some_and(|values| !values.is_empty())) {
            broken.push("a schema has an empty enumeration");
        }
        let is_dangling = |pointer: &str| {
            !pointer.starts_with("#/$defs/") || schema.pointer(pointer.trim_start_matches('#')).is_none()
        };
        if at.get("$ref").and_then(Value::as_str).is_some_and(is_dangling) {
            broken.push("a schema has a reference that is not into its '$defs'");
        }
    });
    broken
}

/// Visits every object of a schema that is not a map of properties or a constant.
fn every(schema: &Value, visit: &mut impl FnMut(&Value)) {
    let Some(fields) = schema.as_object() else { return };
    visit(schema);
    for (keyword, value) in fields {
        match (keyword.as_str(), value) {
            ("properties" | "$defs" | "patternProperties", Value::Object(named)) => {
                named.values().for_each(|schema| every(schema, visit));
            }
            ("enum" | "const" | "default" | "examples" | "required", _) => {}
            (_, Value::Array(list)) => list.iter().for_each(|schema| every(schema, visit)),
            (_, other) => every(other, visit),
        }
    }
}

/// Returns media type and base64 of every image in the request.
fn images(body: &Value) -> Vec<(String, String)> {
    let mut found = Vec::new();
    walk(body, &mut |at| {
        if at["type"] == "base64" && at["data"].is_string() {
            found.push((text(at, "/media_type").to_owned(), text(at, "/data").to_owned()));
        }
        if at["inlineData"].is_object() {
            found.push((text(at, "/inlineData/mimeType").to_owned(), text(at, "/inlineData/data").to_owned()));
        }
        if at["image"]["source"]["bytes"].is_string() {
            let mime = format!("image/{}", text(at, "/image/format"));
            found.push((mime, text(at, "/image/source/bytes").to_owned()));
        }
        for url in ["/image_url", "/image_url/url"] {
            let inline = text(at, url).strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"));
            found.extend(inline.map(|(mime, data)| (mime.to_owned(), data.to_owned())));
        }
    });
    found
}

fn kind_of(data: &str) -> Option<&'static str> {
    let bytes = BASE64_STANDARD.decode(data).ok()?;
    let kinds: [(&[u8], &str); 4] =
        [(b"\xff\xd8\xff", "image/jpeg"), (b"\x89PNG", "image/png"), (b"GIF8", "image/gif"), (b"RIFF", "image/webp")];
    kinds.iter().find(|(magic, _)| bytes.starts_with(magic)).map(|(_, kind)| *kind)
}

fn walk(value: &Value, visit: &mut impl FnMut(&Value)) {
    visit(value);
    match value {
        Value::Object(fields) => fields.values().for_each(|value| walk(value, visit)),
        Value::Array(items) => items.iter().for_each(|value| walk(value, visit)),
        _ => {}
    }
}

pub(super) fn named(tools: &Value, name: &str, schema: &str) -> Vec<(String, Value)> {
    let schema_of = |tool: &Value| tool.pointer(schema).cloned().unwrap_or_default();
    items(tools, "").iter().map(|tool| (text(tool, name).to_owned(), schema_of(tool))).collect()
}

/// Returns the calls of `asked`, answered if the ids of `answered` contain theirs.
fn paired(asked: impl Iterator<Item = (String, String, Value)>, answered: &[String]) -> Vec<Call> {
    asked.map(|(id, name, arguments)| Call { is_answered: answered.contains(&id), id, name, arguments }).collect()
}

// Chat Completions, Cohere and Ollama.

pub(super) fn chat_tools(body: &Value) -> Vec<(String, Value)> {
    named(&body["tools"], "/function/name", "/function/parameters")
}

pub(super) fn chat_calls(body: &Value) -> Vec<Call> {
    let messages = items(body, "/messages");
    let turns = messages.iter().enumerate().filter(|(_, message)| !items(message, "/tool_calls").is_empty());
    turns
        .flat_map(|(at, message)| {
            let results = messages[at + 1..].iter().take_while(|next| next["role"] == "tool");
            let answered: Vec<_> = results.map(|result| text(result, "/tool_call_id").to_owned()).collect();
            let asked = items(message, "/tool_calls").iter().map(|call| {
                let arguments = call["function"]["arguments"].clone();
                (text(call, "/id").to_owned(), text(call, "/function/name").to_owned(), arguments)
            });
            paired(asked, &answered)
        })
        .collect()
}

/// Ollama's calls have no ids: as many results follow.
pub(super) fn ollama_calls(body: &Value) -> Vec<Call> {
    let messages = items(body, "/messages");
    let turns = messages.iter().enumerate().filter(|(_, message)| !items(message, "/tool_calls").is_empty());
    turns
        .flat_map(|(at, message)| {
            let results = messages[at + 1..].iter().take_while(|next| next["role"] == "tool").count();
            items(message, "/tool_calls").iter().enumerate().map(move |(n, call)| Call {
                id: String::new(),
                name: text(call, "/function/name").to_owned(),
                arguments: call["function"]["arguments"].clone(),
                is_answered: n < results,
            })
        })
        .collect()
}

fn roles(body: &Value) -> Vec<&str> {
    items(body, "/messages").iter().map(|message| text(message, "/role")).collect()
}

fn rule(fine: bool, rule: &str) -> Option<String> {
    (!fine).then(|| rule.to_owned())
}

pub(super) fn openai_chat(body: &Value) -> Vec<String> {
    let ids = chat_calls(body).iter().all(|call| (1..=40).contains(&call.id.len()));
    let mut broken: Vec<_> = rule(ids, "an id is empty or longer than 40 characters").into_iter().collect();
    broken.extend(openai_tools(&chat_tools(body), items(body, "/tools"), "/function/description"));
    broken
}

fn openai_tools(schemas: &[(String, Value)], tools: &[Value], description: &str) -> Vec<String> {
    let mut complete = true;
    for (_, schema) in schemas {
        complete &= schema.get("properties").is_some();
        every(schema, &mut |at| complete &= at["type"] != "array" || at.get("items").is_some());
    }
    let short = tools.iter().all(|tool| text(tool, description).chars().count() <= 1024);
    let rules = [
        rule(complete, "a schema misses 'properties' or 'items'"),
        rule(short, "a description is longer than 1024 characters"),
        rule(tools.len() <= 128, "more than 128 tools"),
    ];
    rules.into_iter().flatten().collect()
}

pub(super) fn mistral_chat(body: &Value) -> Vec<String> {
    let is_short = |id: &str| id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let ids = chat_calls(body).iter().all(|call| is_short(&call.id));
    let order = !roles(body).windows(2).any(|pair| pair == ["tool", "user"]);
    let rules =
        [rule(ids, "an id is not of nine letters and digits"), rule(order, "a user message follows results directly")];
    rules.into_iter().flatten().collect()
}

pub(super) fn deepseek_chat(body: &Value) -> Vec<String> {
    let turns = items(body, "/messages").iter().filter(|message| !items(message, "/tool_calls").is_empty());
    let fine = turns.clone().all(|message| !text(message, "/reasoning_content").is_empty());
    rule(fine, "a message with calls has no reasoning_content").into_iter().collect()
}

// Responses.

pub(super) fn responses_calls(body: &Value) -> Vec<Call> {
    let outputs = items(body, "/input").iter().filter(|item| item["type"] == "function_call_output");
    let answered: Vec<_> = outputs.map(|item| text(item, "/call_id").to_owned()).collect();
    let calls = items(body, "/input").iter().filter(|item| item["type"] == "function_call");
    let asked = calls
        .map(|item| (text(item, "/call_id").to_owned(), text(item, "/name").to_owned(), item["arguments"].clone()));
    paired(asked, &answered)
}

pub(super) fn responses(body: &Value) -> Vec<String> {
    let calls = responses_calls(body);
    let ids: BTreeSet<_> = calls.iter().map(|call| &call.id).collect();
    let lengths = calls.iter().all(|call| (1..=64).contains(&call.id.len()));
    let mut broken: Vec<_> = [
        rule(ids.len() == calls.len(), "two calls have the same id"),
        rule(lengths, "an id is empty or longer than 64 characters"),
    ]
    .into_iter()
    .flatten()
    .collect();
    let tools = named(&body["tools"], "/name", "/parameters");
    broken.extend(openai_tools(&tools, items(body, "/tools"), "/description"));
    broken
}

// Messages and Converse.

/// Returns the calls in blocks, answered by results of the next message.
fn block_calls(
    body: &Value,
    call: fn(&Value) -> Option<(String, String, Value)>,
    result: fn(&Value) -> Option<String>,
) -> Vec<Call> {
    let messages = items(body, "/messages");
    let turns = messages.iter().enumerate();
    turns
        .flat_map(|(at, message)| {
            let next = messages.get(at + 1).map_or(&[][..], |next| items(next, "/content"));
            let answered: Vec<_> = next.iter().filter_map(result).collect();
            paired(items(message, "/content").iter().filter_map(call), &answered)
        })
        .collect()
}

pub(super) fn messages_calls(body: &Value) -> Vec<Call> {
    let call = |block: &Value| {
        (block["type"] == "tool_use")
            .then(|| (text(block, "/id").to_owned(), text(block, "/name").to_owned(), block["input"].clone()))
    };
    let result = |block: &Value| (block["type"] == "tool_result").then(|| text(block, "/tool_use_id").to_owned());
    block_calls(body, call, result)
}

pub(super) fn converse_calls(body: &Value) -> Vec<Call> {
    let call = |block: &Value| {
        let call = block.get("toolUse")?;
        Some((text(call, "/toolUseId").to_owned(), text(call, "/name").to_owned(), call["input"].clone()))
    };
    let result = |block: &Value| Some(text(block.get("toolResult")?, "/toolUseId").to_owned());
    block_calls(body, call, result)
}

fn claude_ids(calls: &[Call]) -> [Option<String>; 2] {
    let ids: BTreeSet<_> = calls.iter().map(|call| &call.id).collect();
    let plain = calls.iter().all(|call| is_name(&call.id));
    [rule(ids.len() == calls.len(), "two calls have the same id"), rule(plain, "an id has other characters")]
}

fn property_keys(schemas: &[(String, Value)]) -> Option<String> {
    let is_plain = |key: &str| {
        (1..=64).contains(&key.len()) && key.chars().all(|c| c.is_ascii_alphanumeric() || "_.-".contains(c))
    };
    let mut fine = true;
    for (_, schema) in schemas {
        every(schema, &mut |at| {
            fine &= at["properties"].as_object().is_none_or(|all| all.keys().all(|key| is_plain(key)));
        });
    }
    rule(fine, "a property has a key of other characters")
}

pub(super) fn messages(body: &Value) -> Vec<String> {
    let mut broken: Vec<_> = claude_ids(&messages_calls(body)).into_iter().flatten().collect();
    broken.extend(property_keys(&named(&body["tools"], "/name", "/input_schema")));
    for message in items(body, "/messages") {
        let blocks = items(message, "/content");
        let texts: Vec<_> = blocks.iter().filter(|block| block["type"] == "text").map(|b| text(b, "/text")).collect();
        broken.extend(rule(message["content"].is_string() || !blocks.is_empty(), "a message is empty"));
        broken.extend(rule(texts.iter().all(|text| !text.is_empty()), "a text is empty"));
        let blank = !texts.is_empty() && texts.iter().all(|text| text.trim().is_empty());
        broken.extend(rule(!blank, "a message has blank texts only"));
    }
    broken
}

pub(super) fn converse(body: &Value) -> Vec<String> {
    let calls = converse_calls(body);
    let mut broken: Vec<_> = claude_ids(&calls).into_iter().flatten().collect();
    let has_tools = !items(body, "/toolConfig/tools").is_empty();
    broken.extend(rule(calls.is_empty() || has_tools, "a conversation with calls offers no tools"));
    broken.extend(rule(roles(body).first() == Some(&"user"), "the first message is not the user's"));
    for message in items(body, "/messages") {
        let blocks = items(message, "/content");
        let texts = blocks.iter().filter_map(|block| block["text"].as_str());
        broken.extend(rule(!blocks.is_empty(), "a message is empty"));
        broken.extend(rule(texts.clone().all(|text| !text.trim().is_empty()), "a text is blank"));
    }
    broken
}

// Gemini.

pub(super) fn gemini_tools(body: &Value) -> Vec<(String, Value)> {
    let declared = items(body, "/tools").iter().flat_map(|tool| items(tool, "/functionDeclarations"));
    declared.map(|one| (text(one, "/name").to_owned(), one["parametersJsonSchema"].clone())).collect()
}

/// Calls are answered by their order: as many results follow in the next content.
pub(super) fn gemini_calls(body: &Value) -> Vec<Call> {
    let contents = items(body, "/contents");
    let of = |content: &Value, what: &str| -> Vec<Value> {
        items(content, "/parts").iter().filter_map(|part| part.get(what).cloned()).collect()
    };
    let turns = contents.iter().enumerate();
    turns
        .flat_map(|(at, content)| {
            let results = contents.get(at + 1).map_or(0, |next| of(next, "functionResponse").len());
            let calls = of(content, "functionCall");
            let is_answered = calls.is_empty() || calls.len() == results;
            calls.into_iter().map(move |call| Call {
                id: text(&call, "/id").to_owned(),
                name: text(&call, "/name").to_owned(),
                arguments: call.get("args").cloned().unwrap_or_else(|| serde_json::json!({})),
                is_answered,
            })
        })
        .collect()
}

pub(super) fn gemini(body: &Value) -> Vec<String> {
    let contents = items(body, "/contents");
    let mut broken = Vec::new();
    broken.extend(rule(contents.iter().all(|content| !items(content, "/parts").is_empty()), "a content is empty"));
    let mut refers = false;
    for part in contents.iter().flat_map(|content| items(content, "/parts")) {
        walk(&part["functionResponse"]["response"], &mut |at| refers |= at.get("$ref").is_some());
    }
    broken.extend(rule(!refers, "a result has a key '$ref'"));
    broken
}
