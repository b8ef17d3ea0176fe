//! Reading requests.

mod parts;

use std::collections::BTreeMap;

use agent_core::{
    Error, ErrorKind, ModelParams, OutputFormat, Result, Retry, ToolChoice, message::Origin, model::Effort,
};
use serde_json::{Map, Value, value::RawValue};

use self::parts::{conversation, instructions, tools};
use super::{claude::Claude, envelope::Head, settings::Settings};
use crate::{
    ParsedRequest,
    error::bounded,
    wire::{json::laid_over, surrogates::text_of},
};

/// Reads a request; the raw JSON of its messages and tools, and `extra`, keep what is not understood.
pub(super) fn decode_request(body: &[u8], origin: &Origin, head: Head<'_>, claude: &Claude) -> Result<ParsedRequest> {
    let text = text_of(body);
    read(&text, origin, head, claude).map_err(|e| {
        let message = format!("the body is not a request for a message: {}", bounded(&e.to_string(), 200));
        Error::new(ErrorKind::InvalidRequest, message).with_retry(Retry::Permanent).with_source(e)
    })
}

fn read(text: &str, origin: &Origin, head: Head<'_>, claude: &Claude) -> serde_json::Result<ParsedRequest> {
    let mut fields: BTreeMap<String, &RawValue> = serde_json::from_str(text)?;
    fields.retain(|_, json| json.get() != "null");
    let mut parsed = ParsedRequest::default();
    if let Some(model) = fields.remove("model") {
        parsed.model = serde_json::from_str(model.get())?;
    }
    parsed.system = fields.remove("system").map(|json| instructions(json, origin)).transpose()?;
    let messages = fields.remove("messages").map_or("null", RawValue::get);
    parsed.messages = conversation(&serde_json::from_str::<Vec<_>>(messages)?, origin)?;
    if let Some(json) = fields.remove("tools") {
        parsed.tools = tools(&serde_json::from_str::<Vec<_>>(json.get())?, origin)?;
    }
    let fields = fields.into_iter().map(|(name, json)| Ok((name, serde_json::from_str(json.get())?)));
    let fields: Map<String, Value> = fields.collect::<serde_json::Result<_>>()?;
    parsed.stream = fields.get("stream") == Some(&Value::Bool(true));
    parsed.params = Reader { fields, has_tools: !parsed.tools.is_empty(), head, claude }.params();
    Ok(parsed)
}

struct Reader<'a> {
    fields: Map<String, Value>,
    has_tools: bool,
    head: Head<'a>,
    claude: &'a Claude,
}

impl Reader<'_> {
    /// What is understood of the fields, so far as writing it gives the same fields; `extra` has the others.
    fn params(self) -> ModelParams {
        let mut params = ModelParams::default();
        params.max_tokens = self.fields.get("max_tokens").and_then(Value::as_u64);
        params.temperature = self.fields.get("temperature").and_then(Value::as_f64);
        params.top_p = self.fields.get("top_p").and_then(Value::as_f64);
        params.stop = self.fields.get("stop_sequences").and_then(texts).unwrap_or_default();
        let plain = params.clone();
        self.read_tool_choice(&mut params);
        if !self.says(&params, "tool_choice") {
            params.clone_from(&plain);
        }
        let chosen = params.clone();
        self.read_output(&mut params);
        let is_taken = self.settings(&params).check().is_ok();
        if !is_taken || !self.says(&params, "thinking") || !self.says(&params, "output_config") {
            params = chosen;
        }
        let written = self.written(&params);
        let fields = self.fields.into_iter().filter(|(name, value)| !(name == "stream" && value == false));
        if let Some(Value::Object(extra)) = laid_over(&written, &Value::Object(fields.collect())) {
            params.extra = extra;
        }
        params
    }

    fn read_tool_choice(&self, params: &mut ModelParams) {
        let Some(choice) = self.fields.get("tool_choice") else { return };
        params.tool_choice = match (choice["type"].as_str(), choice["name"].as_str()) {
            (Some("auto"), _) => Some(ToolChoice::Auto),
            (Some("none"), _) => Some(ToolChoice::None),
            (Some("any"), _) => Some(ToolChoice::Required),
            (Some("tool"), Some(name)) => Some(ToolChoice::Tool(name.to_owned())),
            _ => None,
        };
        params.parallel_tool_calls = choice["disable_parallel_tool_use"].as_bool().map(|disabled| !disabled);
    }

    fn read_output(&self, params: &mut ModelParams) {
        let Some(config) = self.fields.get("output_config") else { return };
        params.effort = match config["effort"].as_str() {
            Some("low") => Some(Effort::Low),
            Some("medium") => Some(Effort::Medium),
            Some("high") => Some(Effort::High),
            _ => None,
        };
        let schema = config.pointer("/format/schema");
        params.output = schema.map(|schema| OutputFormat::new("output", schema.clone()).strict(true).into());
    }

    fn settings<'p>(&'p self, params: &'p ModelParams) -> Settings<'p> {
        Settings::new(params, self.has_tools, self.head.clone(), self.claude)
    }

    fn written(&self, params: &ModelParams) -> Value {
        serde_json::to_value(self.settings(params)).unwrap_or_default()
    }

    /// True if `params` say the field, or its absence, as it came.
    fn says(&self, params: &ModelParams, name: &str) -> bool {
        self.written(params).get(name) == self.fields.get(name)
    }
}

fn texts(value: &Value) -> Option<Vec<String>> {
    value.as_array()?.iter().map(|text| text.as_str().map(str::to_owned)).collect()
}
