//! Everything of a request but its messages and its tools.

use agent_core::{ModelParams, OutputFormat, ToolChoice, model::Effort};
use serde::Serialize;
use serde_json::Value;

#[derive(Serialize)]
pub(super) struct Settings<'a> {
    model: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    p: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u64>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    stop_sequences: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<Thinking>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<Format<'a>>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    stream: bool,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Thinking {
    Disabled,
    Enabled {
        #[serde(skip_serializing_if = "Option::is_none")]
        token_budget: Option<u64>,
    },
}

#[derive(Serialize)]
struct Format<'a> {
    r#type: &'static str,
    #[serde(skip_serializing_if = "Value::is_null")]
    json_schema: &'a Value,
}

impl<'a> Settings<'a> {
    /// The server refuses a word about tools where there are none.
    pub(super) fn new(model: &'a str, params: &'a ModelParams, has_tools: bool, stream: bool) -> Self {
        Self {
            model,
            temperature: params.temperature,
            p: params.top_p,
            max_tokens: params.max_tokens,
            stop_sequences: &params.stop,
            seed: params.seed,
            tool_choice: params.tool_choice.as_ref().filter(|_| has_tools).and_then(choice),
            thinking: match params.thinking_tokens {
                Some(0) => Some(Thinking::Disabled),
                Some(most) => Some(Thinking::Enabled { token_budget: Some(most) }),
                None => params.effort.map(Thinking::of),
            },
            response_format: params.output.as_deref().map(Format::of),
            stream,
        }
    }
}

/// None for what the model does when nothing is said.
fn choice(choice: &ToolChoice) -> Option<&'static str> {
    match choice {
        ToolChoice::None => Some("NONE"),
        ToolChoice::Required | ToolChoice::Tool(_) => Some("REQUIRED"),
        _ => None,
    }
}

impl Thinking {
    pub(super) fn of(effort: Effort) -> Self {
        let token_budget = match effort {
            Effort::None => return Self::Disabled,
            Effort::Minimal => Some(256),
            Effort::Low => Some(1_024),
            Effort::Medium => Some(4_096),
            _ => None,
        };
        Self::Enabled { token_budget }
    }
}

impl<'a> Format<'a> {
    fn of(output: &'a OutputFormat) -> Self {
        Self { r#type: "json_object", json_schema: &output.schema }
    }
}
