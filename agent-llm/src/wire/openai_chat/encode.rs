//! Writing requests.

use agent_core::{History, ModelParams, ModelRequest, ToolChoice, ToolSpec, WireKey};
use serde::Serialize;
use serde_json::Value;

use super::{
    message::{Manner, Messages, write_spoken},
    profile::{MaxTokens, Profile},
};
use crate::wire::json::{write, write_with};

/// Everything but the messages and the tools, which are written once and kept.
#[derive(Serialize)]
struct Settings<'a> {
    model: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u64>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    stop: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Choice<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parallel_tool_calls: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Choice<'a> {
    Mode(&'static str),
    Tool { r#type: &'static str, function: Named<'a> },
}

#[derive(Serialize)]
struct Named<'a> {
    name: &'a str,
}

#[derive(Serialize)]
struct Tool<'a> {
    r#type: &'static str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    description: &'a str,
    parameters: &'a Value,
}

/// Writes the request's body to `out`.
pub(super) fn encode(
    req: &ModelRequest,
    model: &str,
    profile: &Profile,
    manner: &Manner,
    key: WireKey,
    out: &mut Vec<u8>,
) {
    let extra = &req.params.extra;
    write_with(&Settings::new(req, model, profile), extra, out);
    out.pop(); // the closing brace
    if !extra.contains_key("messages") {
        out.extend_from_slice(b",\"messages\":[");
        if let Some(system) = &req.system {
            write_spoken(manner, manner.system_role.as_str(), system.parts(), out);
            out.push(b',');
        }
        write_history(&req.messages, manner, key, out);
        out.pop_if(|last| *last == b',');
        out.push(b']');
    }
    if !req.tools.is_empty() && !extra.contains_key("tools") {
        out.extend_from_slice(b",\"tools\":");
        out.extend_from_slice(&req.tools.written(key, write_tools));
    }
    out.push(b'}');
}

/// Each message has a comma after it, so that what is written of one does not depend on whether another follows.
fn write_history(history: &History, manner: &Manner, key: WireKey, out: &mut Vec<u8>) {
    let messages = Messages { manner, history };
    history.write(key, out, |at, message, out| messages.write(at, message, out));
}

fn write_tools(specs: &[ToolSpec]) -> Vec<u8> {
    let tools = specs.iter().map(|spec| Tool {
        r#type: "function",
        function: Function { name: &spec.name, description: &spec.description, parameters: &spec.parameters },
    });
    let mut out = Vec::new();
    write(&tools.collect::<Vec<_>>(), &mut out);
    out
}

impl<'a> Settings<'a> {
    fn new(req: &'a ModelRequest, model: &'a str, profile: &Profile) -> Self {
        let params: &ModelParams = &req.params;
        let (max_tokens, max_completion_tokens) = match profile.max_tokens {
            MaxTokens::MaxTokens => (params.max_tokens, None),
            MaxTokens::MaxCompletionTokens => (None, params.max_tokens),
        };
        // Servers refuse a word about tools where there are none.
        let has_tools = !req.tools.is_empty() || params.extra.contains_key("tools");
        Self {
            model,
            temperature: params.temperature,
            top_p: params.top_p,
            max_tokens,
            max_completion_tokens,
            stop: &params.stop,
            seed: params.seed,
            tool_choice: params.tool_choice.as_ref().filter(|_| has_tools).map(Choice::new),
            parallel_tool_calls: params.parallel_tool_calls.filter(|_| has_tools),
            stream: req.stream.then_some(true),
            stream_options: (req.stream && profile.include_usage).then_some(StreamOptions { include_usage: true }),
        }
    }
}

impl<'a> Choice<'a> {
    fn new(choice: &'a ToolChoice) -> Self {
        match choice {
            ToolChoice::None => Self::Mode("none"),
            ToolChoice::Required => Self::Mode("required"),
            ToolChoice::Tool(name) => Self::Tool { r#type: "function", function: Named { name } },
            _ => Self::Mode("auto"),
        }
    }
}
