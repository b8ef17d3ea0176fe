//! Everything of a request but the conversation and the tools.

use agent_core::{EventKind, ModelParams, ModelRequest, OutputFormat, Result, ToolChoice, model::Effort};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{
    claude::{Claude, ClaudeThinking, Thoughtless},
    envelope::Head,
    schema::closed,
    server_tools::{McpServer, mcp_servers},
};

use crate::wire::server_tools::refusal;

/// The least budget for thinking that the API takes.
const LEAST_BUDGET: u64 = 1_024;

/// The least `top_p` that the API takes of a model that thinks.
const LEAST_TOP_P: f64 = 0.95;

#[derive(Serialize)]
pub(super) struct Settings<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    anthropic_version: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    anthropic_beta: Vec<&'a str>,
    max_tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    stop_sequences: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Choice<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<Thinking>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    mcp_servers: Vec<McpServer<'a>>,
    #[serde(skip_serializing_if = "OutputConfig::is_empty")]
    output_config: OutputConfig,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream: Option<bool>,
}

#[derive(Serialize)]
struct Choice<'a> {
    r#type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    disable_parallel_tool_use: bool,
}

#[derive(PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Thinking {
    Adaptive,
    Enabled { budget_tokens: u64 },
    Disabled,
}

#[derive(Default, Serialize)]
struct OutputConfig {
    #[serde(skip_serializing_if = "Option::is_none")]
    effort: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<Format>,
}

#[derive(Serialize)]
struct Format {
    r#type: &'static str,
    schema: Value,
}

impl<'a> Settings<'a> {
    pub(super) fn of(req: &'a ModelRequest, head: Head<'a>, claude: &Claude) -> Self {
        // The API refuses a word about tools where there are none.
        let has_tools = !req.tools.is_empty() || req.params.extra.contains_key("tools");
        let settings = Self::new(&req.params, has_tools, head, claude);
        Self { mcp_servers: mcp_servers(&req.tools), ..settings }
    }

    pub(super) fn new(params: &'a ModelParams, has_tools: bool, head: Head<'a>, claude: &Claude) -> Self {
        let max_tokens = params.max_tokens.unwrap_or(claude.max_tokens);
        let (thinking, effort) = match params.thinking_tokens.filter(|_| claude.thinking == ClaudeThinking::Budget) {
            Some(0) => (Some(Thinking::Disabled), None),
            Some(budget_tokens) => (Some(Thinking::Enabled { budget_tokens }), None),
            None => params.effort.map_or((None, None), |effort| think(effort, max_tokens, claude)),
        };
        // The API forces no tool on a model that thinks.
        let is_forced = has_tools && matches!(params.tool_choice, Some(ToolChoice::Required | ToolChoice::Tool(_)));
        let thinking = thinking.filter(|thinking| !is_forced || *thinking == Thinking::Disabled);
        Self {
            model: head.model,
            anthropic_version: head.version,
            anthropic_beta: head.betas,
            max_tokens,
            temperature: params.temperature,
            top_p: params.top_p,
            stop_sequences: &params.stop,
            tool_choice: Choice::new(params).filter(|_| has_tools),
            thinking,
            mcp_servers: Vec::new(),
            output_config: OutputConfig { effort, format: params.output.as_deref().and_then(Format::new) },
            stream: head.stream,
        }
    }

    /// Checks that the API takes these settings together.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidRequest`](agent_core::ErrorKind) for a model that is to think and to choose its words in a way of
    /// its own, or more than the answer has room for.
    pub(super) fn check(&self) -> Result<()> {
        if let Some(Thinking::Enabled { budget_tokens }) = self.thinking {
            check_room(budget_tokens, self.max_tokens)?;
        }
        let thinks = self.thinking.as_ref().is_some_and(|thinking| *thinking != Thinking::Disabled);
        let is_own = self.temperature.is_some_and(|t| t != 1.0) || self.top_p.is_some_and(|p| p < LEAST_TOP_P);
        if !(thinks && is_own) {
            return Ok(());
        }
        Err(refusal(
            "a model that thinks takes no temperature but 1 and no top_p below 0.95: leave them out, or the effort",
        ))
    }
}

/// Tells the run that a Claude, whoever serves it, does not think as it is asked to, where it is.
pub(crate) fn tell_if_thoughtless(req: &ModelRequest) {
    let ModelParams { thinking_tokens, effort, tool_choice, .. } = &*req.params;
    let is_forced = !req.tools.is_empty() && matches!(tool_choice, Some(ToolChoice::Required | ToolChoice::Tool(_)));
    let is_to_think = match thinking_tokens {
        Some(most) => *most > 0,
        None => effort.is_some_and(|effort| effort != Effort::None),
    };
    if is_forced && is_to_think {
        let message = "the model does not think in this call: a tool is forced on it, and its API forces none on a model that thinks";
        req.cx.emit(EventKind::Warning { message: message.into() });
    }
}

/// Checks that a Claude, whoever serves it, can think so many tokens in an answer of at most `max_tokens`.
///
/// # Errors
/// [`ErrorKind::InvalidRequest`](agent_core::ErrorKind).
pub(crate) fn check_budget(budget: u64, max_tokens: Option<u64>, claude: &Claude) -> Result<()> {
    check_room(budget, max_tokens.unwrap_or(claude.max_tokens))
}

fn check_room(budget: u64, max_tokens: u64) -> Result<()> {
    match (LEAST_BUDGET..max_tokens).contains(&budget) {
        true => Ok(()),
        false => Err(refusal("a model thinks 1,024 tokens at least, and less than `max_tokens`")),
    }
}

/// The fields that ask a Claude for `effort`, whoever serves it, in an answer of at most `max_tokens`.
pub(crate) fn thinking(effort: Effort, max_tokens: Option<u64>, claude: &Claude) -> Map<String, Value> {
    let (thinking, effort) = think(effort, max_tokens.unwrap_or(claude.max_tokens), claude);
    let thinking = thinking.map(|thinking| ("thinking".to_owned(), json!(thinking)));
    let effort = effort.map(|effort| ("output_config".to_owned(), json!({"effort": effort})));
    thinking.into_iter().chain(effort).collect()
}

fn think(effort: Effort, max_tokens: u64, claude: &Claude) -> (Option<Thinking>, Option<&'static str>) {
    match (effort, claude.thoughtless, claude.thinking) {
        (Effort::None, Thoughtless::ByDefault, _) => (None, None),
        (Effort::None, Thoughtless::WhenTold, _) => (Some(Thinking::Disabled), None),
        (Effort::None, Thoughtless::Never, _) => (None, Some("low")),
        (_, _, ClaudeThinking::Adaptive) => (Some(Thinking::Adaptive), Some(word(effort))),
        (_, _, ClaudeThinking::Budget) => (budget(effort, max_tokens), None),
    }
}

fn word(effort: Effort) -> &'static str {
    match effort {
        Effort::None | Effort::Minimal | Effort::Low => "low",
        Effort::Medium => "medium",
        Effort::XHigh => "xhigh",
        Effort::Max => "max",
        _ => "high",
    }
}

/// A share of the answer's tokens; none if the least that the API takes would not leave as much for the answer.
fn budget(effort: Effort, max_tokens: u64) -> Option<Thinking> {
    let share = match effort {
        Effort::None | Effort::Minimal => 0,
        Effort::Low => max_tokens / 8,
        Effort::Medium => max_tokens / 4,
        Effort::XHigh => max_tokens / 4 * 3,
        Effort::Max => max_tokens / 8 * 7,
        _ => max_tokens / 2,
    };
    (max_tokens >= 2 * LEAST_BUDGET).then(|| Thinking::Enabled { budget_tokens: share.max(LEAST_BUDGET) })
}

impl<'a> Choice<'a> {
    fn new(params: &'a ModelParams) -> Option<Self> {
        let one_at_a_time = params.parallel_tool_calls == Some(false);
        let choice = |r#type| Self { r#type, name: None, disable_parallel_tool_use: one_at_a_time };
        match &params.tool_choice {
            None => one_at_a_time.then(|| choice("auto")),
            Some(ToolChoice::None) => Some(Self { disable_parallel_tool_use: false, ..choice("none") }),
            Some(ToolChoice::Required) => Some(choice("any")),
            Some(ToolChoice::Tool(name)) => Some(Self { name: Some(name), ..choice("tool") }),
            Some(_) => Some(choice("auto")),
        }
    }
}

impl OutputConfig {
    fn is_empty(&self) -> bool {
        self.effort.is_none() && self.format.is_none()
    }
}

impl Format {
    /// None for any JSON: the API enforces a schema or nothing.
    fn new(format: &OutputFormat) -> Option<Self> {
        (!format.schema.is_null()).then(|| Self { r#type: "json_schema", schema: closed(&format.schema) })
    }
}
