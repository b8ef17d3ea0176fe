//! Rendering of earlier calls and results as text.

use agent_core::{AssistantMessage, Block, History, Message, Part, Result, ToolCall, ToolMessage, ToolSpec};
use serde_json::{Map, Value};

use super::{
    call::{self, CALLS},
    markup::{escape, is_element_name, verbatim},
    read::SEVERAL,
};

/// Parsing depth of a rendered value, which contains no nested elements.
const FLAT: usize = 0;

/// Renders the conversation with calls and results as text.
pub(super) fn history(history: &History, tools: &[ToolSpec]) -> Result<History> {
    let mut rendered = History::default();
    let mut messages = history.iter().peekable();
    while let Some(message) = messages.next() {
        rendered.push(match message {
            Message::Assistant(said) if said.has_calls() => Message::Assistant(assistant(said, tools)),
            Message::Tool(first) => {
                let rest = std::iter::from_fn(|| messages.next_if(|m| m.as_tool().is_some())?.as_tool());
                results([first].into_iter().chain(rest))
            }
            other => other.clone(),
        })?;
    }
    Ok(rendered)
}

/// Merges the text and the calls of a message into one text, at the position of the first.
fn assistant(message: &AssistantMessage, tools: &[ToolSpec]) -> AssistantMessage {
    let calls: Vec<_> = message.calls().collect();
    let (text, group) = (message.text(), group(&calls, tools));
    let text = if text.trim().is_empty() { group } else { format!("{}\n\n{group}", text.trim_end()) };
    let is_text = |block: &Block| matches!(block, Block::Text(_) | Block::ToolCall(_));
    let place = message.blocks().iter().position(is_text).unwrap_or_default();
    let mut blocks: Vec<_> = message.blocks().iter().filter(|block| !is_text(block)).cloned().collect();
    blocks.insert(place, Block::text(text));
    AssistantMessage::new(blocks)
}

fn group(calls: &[&ToolCall], tools: &[ToolSpec]) -> String {
    let [alone, in_group] = CALLS;
    match calls {
        [call] => element(alone, &body(call, tools)),
        calls => {
            let calls = calls.iter().map(|call| element(in_group, &body(call, tools)));
            element(SEVERAL, &calls.collect::<Vec<_>>().join("\n"))
        }
    }
}

fn element(tag: &str, inside: &str) -> String {
    format!("<{tag}>\n{inside}\n</{tag}>")
}

fn body(call: &ToolCall, tools: &[ToolSpec]) -> String {
    let schema = tools.iter().find(|tool| *tool.name == *call.name).map(|tool| &tool.parameters["properties"]);
    let name = escape(&call.name);
    let parameters = match serde_json::from_str::<Map<String, Value>>(&call.arguments) {
        Ok(fields) => {
            let fields = fields.iter().map(|(name, value)| {
                let schema = schema.and_then(|properties| properties.get(name));
                parameter(name, &text(value, schema))
            });
            fields.collect::<Vec<_>>().join("\n")
        }
        Err(_) => escape(&call.arguments),
    };
    format!("<tool_name>{name}</tool_name>\n{}", element("parameter", &parameters))
}

fn parameter(name: &str, value: &str) -> String {
    if is_element_name(name) {
        format!("<{name}>{value}</{name}>")
    } else {
        let label = escape(name).replace('"', "&quot;");
        format!("<parameter name=\"{label}\">{value}</parameter>")
    }
}

/// Renders a value so that it is parsed back unchanged.
fn text(value: &Value, schema: Option<&Value>) -> String {
    let Value::String(text) = value else { return escape(&value.to_string()) };
    let plain = escape(text);
    if call::value(&plain, schema, FLAT) == *value { plain } else { verbatim(text) }
}

/// Renders the results of one turn as the next user message.
fn results<'a>(results: impl Iterator<Item = &'a ToolMessage>) -> Message {
    let mut text = String::from("Tool execution results:");
    let mut parts = Vec::new();
    for result in results {
        let said: Vec<_> = result.parts().iter().filter_map(Part::as_text).collect();
        let outcome = element(if result.is_error() { "error" } else { "result" }, &said.join("\n"));
        let name = escape(result.name());
        text.push_str(&format!("\n{}", element("tool_result", &format!("<tool_name>{name}</tool_name>\n{outcome}"))));
        parts.extend(result.parts().iter().filter(|part| part.as_text().is_none()).cloned());
    }
    parts.insert(0, Part::text(text));
    Message::User(agent_core::UserMessage::new(parts))
}
