//! Everything of a request but the conversation and the tools.

use agent_core::{Error, ErrorKind, ModelParams, ModelRequest, OutputFormat, Result, Retry, ToolChoice};
use serde::Serialize;
use serde_json::{Map, Value};

use super::family::Family;
use crate::wire::anthropic::{check_budget, closed};

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Settings<'a> {
    #[serde(skip_serializing_if = "Inference::is_empty")]
    inference_config: Inference<'a>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    additional_model_request_fields: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_config: Option<OutputConfig<'a>>,
    #[serde(skip_serializing_if = "Tools::is_empty")]
    pub(super) tool_config: Tools<'a>,
}

#[derive(Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Inference<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    stop_sequences: &'a [String],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct OutputConfig<'a> {
    text_format: TextFormat<'a>,
}

#[derive(Serialize)]
struct TextFormat<'a> {
    r#type: &'static str,
    structure: Structure<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Structure<'a> {
    json_schema: JsonSchema<'a>,
}

#[derive(Serialize)]
struct JsonSchema<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    /// JSON in a text.
    schema: String,
}

/// What is said of tools beside the list of them.
#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Tools<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Choice<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
enum Choice<'a> {
    Auto {},
    Any {},
    Tool { name: &'a str },
}

impl<'a> Settings<'a> {
    /// # Errors
    /// [`ErrorKind::InvalidRequest`] for what the API, or the model, has no word for.
    pub(super) fn of(req: &'a ModelRequest, family: &Family) -> Result<Self> {
        Self::new(&req.params, !req.tools.is_empty(), family)
    }

    /// # Errors
    /// As [`of`](Self::of).
    pub(super) fn new(params: &'a ModelParams, has_tools: bool, family: &Family) -> Result<Self> {
        // Where a tool is forced on a Claude, it does not think.
        let is_forced = has_tools && matches!(params.tool_choice, Some(ToolChoice::Required | ToolChoice::Tool(_)));
        let is_thoughtless = is_forced && matches!(family, Family::Claude(_));
        let effort = params.effort.filter(|_| !is_thoughtless);
        let fields = match params.thinking_tokens {
            Some(most) => Some(family.counted(most)?).filter(|_| !is_thoughtless || most == 0),
            None => effort.map(|effort| family.fields(effort, params.max_tokens)).transpose()?,
        };
        let settings = Self {
            inference_config: Inference {
                max_tokens: params.max_tokens,
                temperature: params.temperature,
                top_p: params.top_p,
                stop_sequences: &params.stop,
            },
            additional_model_request_fields: fields.unwrap_or_default(),
            output_config: params.output.as_deref().and_then(OutputConfig::new),
            tool_config: Tools { tool_choice: Choice::new(params).filter(|_| has_tools) },
        };
        settings.check(family)?;
        Ok(settings)
    }

    fn check(&self, family: &Family) -> Result<()> {
        let thinking = self.additional_model_request_fields.get("thinking");
        let thinks = thinking.is_some_and(|told| told["type"] != "disabled");
        let Inference { max_tokens, temperature, top_p, .. } = &self.inference_config;
        let budget = thinking.and_then(|told| told["budget_tokens"].as_u64());
        if let (Family::Claude(claude), Some(budget)) = (family, budget) {
            check_budget(budget, *max_tokens, claude)?;
        }
        let is_own = temperature.is_some_and(|t| t != 1.0) || top_p.is_some_and(|p| p < 0.95);
        if !(matches!(family, Family::Claude(_)) && thinks && is_own) {
            return Ok(());
        }
        let message =
            "a model that thinks takes no temperature but 1 and no top_p below 0.95: leave them out, or the effort";
        Err(Error::new(ErrorKind::InvalidRequest, message).with_retry(Retry::Permanent))
    }
}

impl Inference<'_> {
    fn is_empty(&self) -> bool {
        *self == Inference::default()
    }
}

impl<'a> OutputConfig<'a> {
    /// None for any JSON: the API enforces a schema or nothing.
    fn new(format: &'a OutputFormat) -> Option<Self> {
        let schema = (!format.schema.is_null()).then(|| closed(&format.schema).to_string())?;
        let json_schema = JsonSchema { name: &format.name, description: format.description.as_deref(), schema };
        Some(Self { text_format: TextFormat { r#type: "json_schema", structure: Structure { json_schema } } })
    }
}

impl Tools<'_> {
    fn is_empty(&self) -> bool {
        self.tool_choice.is_none()
    }
}

impl<'a> Choice<'a> {
    fn new(params: &'a ModelParams) -> Option<Self> {
        match params.tool_choice.as_ref()? {
            // There is no word for it: the tools are left out.
            ToolChoice::None => None,
            ToolChoice::Required => Some(Self::Any {}),
            ToolChoice::Tool(name) => Some(Self::Tool { name }),
            _ => Some(Self::Auto {}),
        }
    }
}
