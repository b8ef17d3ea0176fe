//! Checks for conversations that a provider would reject: calls without results, results without
//! calls.

use std::collections::BTreeSet;

use agent_core::ModelRequest;
use serde_json::Value;

use super::{
    drive::encoded,
    json::{items, text},
};
use crate::Codec;

/// Returns the reasons why the provider would reject the conversation of `request` as encoded by
/// this codec; empty if it would accept it.
///
/// The rules are those of this crate's wires, and are read from the body, not from the codec: each
/// call is answered exactly once, right after it; each result answers a call; no turn is empty; and
/// where the protocol requires it, a user speaks first. For other wires the only check is that the
/// body is JSON.
pub fn refusals(codec: &dyn Codec, request: &ModelRequest) -> Vec<String> {
    let body = encoded(codec, request).and_then(|body| super::drive::parsed(&body));
    match (body, codec.origin().wire()) {
        (Err(why), _) => vec![why],
        (Ok(body), "openai-chat" | "cohere-chat") => chat(&body),
        (Ok(body), "openai-responses") => responses(&body),
        (Ok(body), "anthropic-messages") => anthropic(&body),
        (Ok(body), "gemini-generate") => gemini(&body),
        (Ok(body), "bedrock-converse") => converse(&body),
        (Ok(body), "ollama-chat") => ollama(&body),
        _ => Vec::new(),
    }
}

/// Calls without a result so far.
#[derive(Default)]
struct Open<'a> {
    ids: BTreeSet<&'a str>,
    problems: Vec<String>,
}

impl<'a> Open<'a> {
    fn call(&mut self, id: &'a str) {
        if id.is_empty() || !self.ids.insert(id) {
            self.problems.push(format!("the call '{id}' has no id of its own"));
        }
    }

    fn result(&mut self, id: &'a str) {
        if !self.ids.remove(id) {
            self.problems.push(format!("the result of '{id}' has no call before it"));
        }
    }

    /// Handles any other item: no call may be open.
    fn close(&mut self, at: usize) {
        for id in std::mem::take(&mut self.ids) {
            self.problems.push(format!("the call '{id}' has no result before message {at}"));
        }
    }

    fn done(mut self, at: usize) -> Vec<String> {
        self.close(at);
        self.problems
    }
}

fn chat(body: &Value) -> Vec<String> {
    let (messages, mut open) = (items(body, "/messages"), Open::default());
    for (at, message) in messages.iter().enumerate() {
        if text(message, "/role") == "tool" {
            open.result(text(message, "/tool_call_id"));
            continue;
        }
        open.close(at);
        let calls = items(message, "/tool_calls");
        calls.iter().for_each(|call| open.call(text(call, "/id")));
        let says =
            message["content"].as_str().is_some_and(|said| !said.is_empty()) || !items(message, "/content").is_empty();
        if text(message, "/role") == "user" && !says {
            open.problems.push(format!("message {at} says nothing"));
        }
    }
    open.done(messages.len())
}

fn responses(body: &Value) -> Vec<String> {
    let (input, mut open) = (items(body, "/input"), Open::default());
    for (at, item) in input.iter().enumerate() {
        match text(item, "/type") {
            "function_call" | "custom_tool_call" => open.call(text(item, "/call_id")),
            "function_call_output" | "custom_tool_call_output" => open.result(text(item, "/call_id")),
            // Reasoning and text may occur between the calls of a turn.
            _ if text(item, "/role") == "user" => open.close(at),
            _ => {}
        }
    }
    open.done(input.len())
}

fn anthropic(body: &Value) -> Vec<String> {
    let (messages, mut open) = (items(body, "/messages"), Open::default());
    if messages.first().is_some_and(|first| text(first, "/role") != "user") {
        open.problems.push("the first message is not a user's".into());
    }
    for (at, message) in messages.iter().enumerate() {
        let blocks = items(message, "/content");
        if blocks.is_empty() && text(message, "/content").is_empty() {
            open.problems.push(format!("message {at} says nothing"));
        }
        if text(message, "/role") == "assistant" {
            open.close(at);
        }
        let of = |kind: &'static str| blocks.iter().filter(move |block| text(block, "/type") == kind);
        of("tool_result").for_each(|block| open.result(text(block, "/tool_use_id")));
        open.close(at);
        of("tool_use").for_each(|block| open.call(text(block, "/id")));
    }
    open.done(messages.len())
}

fn converse(body: &Value) -> Vec<String> {
    let (messages, mut open) = (items(body, "/messages"), Open::default());
    for (at, message) in messages.iter().enumerate() {
        if text(message, "/role") != ["user", "assistant"][at % 2] {
            open.problems.push(format!("message {at} is not of the one whose turn it is"));
        }
        let blocks = items(message, "/content");
        if blocks.is_empty() {
            open.problems.push(format!("message {at} says nothing"));
        }
        let of = |kind: &'static str| blocks.iter().filter_map(move |block| block.get(kind));
        of("toolResult").for_each(|block| open.result(text(block, "/toolUseId")));
        open.close(at);
        of("toolUse").for_each(|block| open.call(text(block, "/toolUseId")));
    }
    open.done(messages.len())
}

fn gemini(body: &Value) -> Vec<String> {
    let mut problems = Vec::new();
    let contents = items(body, "/contents");
    let names = |at: usize, kind: &str| -> Vec<&str> {
        let parts = contents.get(at).map_or(&[][..], |content| items(content, "/parts"));
        let mut names: Vec<_> = parts.iter().filter_map(|part| part.get(kind)).map(|of| text(of, "/name")).collect();
        names.sort_unstable();
        names
    };
    for (at, content) in contents.iter().enumerate() {
        if items(content, "/parts").is_empty() {
            problems.push(format!("content {at} says nothing"));
        }
        let (calls, results) = (names(at, "functionCall"), names(at + 1, "functionResponse"));
        if calls != results {
            problems.push(format!("content {at} calls {calls:?} and is answered by {results:?}"));
        }
    }
    if !names(0, "functionResponse").is_empty() {
        problems.push("the first content answers a call".into());
    }
    problems
}

/// Checks that a result names its tool.
fn ollama(body: &Value) -> Vec<String> {
    let (messages, mut problems, mut open) = (items(body, "/messages"), Vec::new(), Vec::new());
    for (at, message) in messages.iter().enumerate() {
        if text(message, "/role") == "tool" {
            let name = text(message, "/tool_name");
            match open.iter().position(|open| *open == name) {
                Some(found) => {
                    open.remove(found);
                }
                None => problems.push(format!("the result of '{name}' has no call before it")),
            }
            continue;
        }
        problems.extend(open.drain(..).map(|name| format!("the call of '{name}' has no result before message {at}")));
        open.extend(items(message, "/tool_calls").iter().map(|call| text(call, "/function/name")));
        if text(message, "/role") == "user"
            && text(message, "/content").is_empty()
            && items(message, "/images").is_empty()
        {
            problems.push(format!("message {at} says nothing"));
        }
    }
    problems.extend(open.iter().map(|name| format!("the call of '{name}' has no result")));
    problems
}
