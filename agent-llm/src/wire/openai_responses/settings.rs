//! The fields of a request that say how to answer.

use std::borrow::Cow;

use agent_core::{ModelParams, OutputFormat, SystemMessage, ToolChoice, ToolSpec, model::Effort};
use serde::Serialize;
use serde_json::Value;

use super::{messages::Manner, server_tools, tools};
use crate::{Profile, wire::content::joined};

/// Everything but the input and the tools, which are written once and kept.
#[derive(Serialize)]
pub(super) struct Settings<'a> {
    model: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<Reasoning<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<Text<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Choice<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parallel_tool_calls: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    store: Option<bool>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    include: Vec<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream: Option<bool>,
}

#[derive(Serialize)]
struct Reasoning<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    effort: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<&'a str>,
}

#[derive(Serialize)]
struct Text<'a> {
    format: Format<'a>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Format<'a> {
    JsonObject,
    JsonSchema {
        name: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        description: Option<&'a str>,
        schema: &'a Value,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        strict: bool,
    },
}

#[derive(Serialize)]
#[serde(untagged)]
enum Choice<'a> {
    Mode(&'static str),
    Tool {
        r#type: Cow<'a, str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<&'a str>,
    },
}

impl<'a> Settings<'a> {
    pub(super) fn new(
        system: Option<&'a SystemMessage>,
        specs: &'a [ToolSpec],
        params: &'a ModelParams,
        stream: bool,
        profile: &'a Profile,
        manner: &'a Manner,
    ) -> Self {
        let (server, model) = (&profile.responses, manner.origin.model());
        let reasoning = Reasoning {
            effort: params.effort.and_then(|wanted| effort(profile.known(wanted))),
            summary: server.reasoning_summary.as_deref(),
        };
        let instructions = system.map(|system| joined(system.parts()));
        // Servers refuse a word about tools where there are none.
        let has_tools = !specs.is_empty() || params.extra.contains_key("tools");
        let choice = params.tool_choice.as_ref().filter(|_| has_tools);
        Self {
            model,
            instructions: instructions.or(server.needs_instructions.then_some(Cow::Borrowed(""))),
            temperature: params.temperature.filter(|_| server.takes("temperature")),
            top_p: params.top_p.filter(|_| server.takes("top_p")),
            max_output_tokens: params.max_tokens.filter(|_| server.takes("max_output_tokens")),
            seed: params.seed.filter(|_| server.takes("seed")),
            reasoning: Some(reasoning).filter(|r| r.effort.is_some() || r.summary.is_some()),
            text: params.output.as_deref().map(|output| Text { format: Format::new(output) }),
            tool_choice: choice.map(|choice| Choice::new(choice, specs, manner)),
            parallel_tool_calls: params.parallel_tool_calls.filter(|_| has_tools),
            store: server.stateless.then_some(false),
            include: include(specs, profile, model),
            stream: (stream || server.always_stream).then_some(true),
        }
    }
}

impl<'a> Format<'a> {
    fn new(output: &'a OutputFormat) -> Self {
        if output.schema.is_null() {
            return Self::JsonObject;
        }
        let OutputFormat { name, description, schema, strict, .. } = output;
        Self::JsonSchema { name, description: description.as_deref(), schema, strict: *strict }
    }
}

impl<'a> Choice<'a> {
    fn new(choice: &'a ToolChoice, specs: &'a [ToolSpec], manner: &Manner) -> Self {
        match choice {
            ToolChoice::None => Self::Mode("none"),
            ToolChoice::Required => Self::Mode("required"),
            ToolChoice::Tool(name) => {
                let spec = specs.iter().find(|spec| spec.name == *name);
                let kind = spec.map_or(Cow::Borrowed("function"), |spec| tools::kind(spec, manner));
                // A tool of the server's own is known by its type.
                let name = matches!(&*kind, "function" | "custom").then_some(name.as_str());
                Self::Tool { r#type: kind, name }
            }
            _ => Self::Mode("auto"),
        }
    }
}

fn effort(effort: Effort) -> Option<&'static str> {
    Some(match effort {
        Effort::None => "none",
        Effort::Minimal => "minimal",
        Effort::Low => "low",
        Effort::Medium => "medium",
        Effort::High => "high",
        Effort::XHigh => "xhigh",
        Effort::Max => "max",
        _ => return None,
    })
}

/// What of the answer is only told on demand: sealed reasoning, and what came of the server's own tools.
fn include(specs: &[ToolSpec], profile: &Profile, model: &str) -> Vec<&'static str> {
    let server = &profile.responses;
    let tools = specs.iter().filter(|spec| server.tool_results && spec.raw.is_none());
    let results = tools.filter_map(|spec| server_tools::include(spec.server.as_ref()?));
    server.seals(model).then_some("reasoning.encrypted_content").into_iter().chain(results).collect()
}
