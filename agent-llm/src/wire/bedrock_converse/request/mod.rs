//! Reading requests.

mod parts;

use std::collections::BTreeMap;

use agent_core::{
    Error, ErrorKind, ModelParams, OutputFormat, Result, Retry, ToolChoice, message::Origin, model::Effort,
};
use serde_json::{Map, Value, value::RawValue};

use self::parts::{conversation, instructions, tools};
use super::{family::Family, settings::Settings};
use crate::{
    ParsedRequest,
    error::bounded,
    wire::{json::laid_over, surrogates::text_of},
};

/// Reads a request; the raw JSON of its messages and tools, and `extra`, keep what is not understood. Its model and whether it
/// is streamed are said by its address.
pub(super) fn decode_request(body: &[u8], origin: &Origin, family: &Family) -> Result<ParsedRequest> {
    let text = text_of(body);
    read(&text, origin, family).map_err(|e| {
        let message = format!("the body is not a request of Converse: {}", bounded(&e.to_string(), 200));
        Error::new(ErrorKind::InvalidRequest, message).with_retry(Retry::Permanent).with_source(e)
    })
}

fn read(text: &str, origin: &Origin, family: &Family) -> serde_json::Result<ParsedRequest> {
    let mut fields: BTreeMap<String, &RawValue> = serde_json::from_str(text)?;
    fields.retain(|_, json| json.get() != "null");
    let system = fields.remove("system").map(|json| instructions(json, origin)).transpose()?;
    let mut parsed = ParsedRequest { system, ..ParsedRequest::default() };
    let messages = fields.remove("messages").map_or("[]", RawValue::get);
    parsed.messages = conversation(&serde_json::from_str::<Vec<_>>(messages)?, origin)?;
    if let Some(json) = fields.remove("toolConfig") {
        let mut of_tools: BTreeMap<String, &RawValue> = serde_json::from_str(json.get())?;
        if let Some(json) = of_tools.remove("tools") {
            parsed.tools = tools(&serde_json::from_str::<Vec<_>>(json.get())?, origin)?;
        }
        let of_tools = values(of_tools)?;
        if !of_tools.is_empty() || parsed.tools.is_empty() {
            parsed.params.extra.insert("toolConfig".into(), Value::Object(of_tools));
        }
    }
    let mut all = values(fields)?;
    all.append(&mut parsed.params.extra);
    parsed.params = Reader { fields: all, has_tools: !parsed.tools.is_empty(), family }.params();
    Ok(parsed)
}

fn values(fields: BTreeMap<String, &RawValue>) -> serde_json::Result<Map<String, Value>> {
    fields.into_iter().map(|(name, json)| Ok((name, serde_json::from_str(json.get())?))).collect()
}

struct Reader<'a> {
    fields: Map<String, Value>,
    has_tools: bool,
    family: &'a Family,
}

impl Reader<'_> {
    /// What is understood of the fields, so far as writing it gives the same fields; `extra` has the others.
    fn params(self) -> ModelParams {
        let mut params = ModelParams::default();
        if let Some(inference) = self.fields.get("inferenceConfig") {
            params.max_tokens = inference["maxTokens"].as_u64();
            params.temperature = inference["temperature"].as_f64();
            params.top_p = inference["topP"].as_f64();
            params.stop = texts(&inference["stopSequences"]).unwrap_or_default();
        }
        for read in [Self::read_tool_choice, Self::read_effort, Self::read_output] {
            let mut more = params.clone();
            read(&self, &mut more);
            if self.says(&more) {
                params = more;
            }
        }
        let written = self.written(&params).unwrap_or_default();
        if let Some(Value::Object(extra)) = laid_over(&written, &Value::Object(self.fields)) {
            params.extra = extra;
        }
        params
    }

    fn read_tool_choice(&self, params: &mut ModelParams) {
        let Some(choice) = self.fields.get("toolConfig").map(|config| &config["toolChoice"]) else { return };
        params.tool_choice = match (choice["tool"]["name"].as_str(), choice.get("any"), choice.get("auto")) {
            (Some(name), ..) => Some(ToolChoice::Tool(name.to_owned())),
            (None, Some(_), _) => Some(ToolChoice::Required),
            (None, None, Some(_)) => Some(ToolChoice::Auto),
            _ => None,
        };
    }

    fn read_effort(&self, params: &mut ModelParams) {
        let Some(more) = self.fields.get("additionalModelRequestFields") else { return };
        let words =
            ["/output_config/effort", "/reasoningConfig/maxReasoningEffort", "/reasoning_config", "/reasoning_effort"];
        params.effort = match words.iter().find_map(|place| more.pointer(place)?.as_str()) {
            Some("low") => Some(Effort::Low),
            Some("medium") => Some(Effort::Medium),
            Some("high") => Some(Effort::High),
            _ => None,
        };
    }

    fn read_output(&self, params: &mut ModelParams) {
        let format =
            self.fields.get("outputConfig").and_then(|config| config.pointer("/textFormat/structure/jsonSchema"));
        let Some(schema) = format.and_then(|format| serde_json::from_str(format["schema"].as_str()?).ok()) else {
            return;
        };
        let text = |name: &str| format.and_then(|format| format[name].as_str()).map(str::to_owned);
        let mut output = OutputFormat::new(text("name").unwrap_or_default(), schema).strict(true);
        output.description = text("description");
        params.output = Some(output.into());
    }

    fn written(&self, params: &ModelParams) -> Option<Value> {
        serde_json::to_value(Settings::new(params, self.has_tools, self.family).ok()?).ok()
    }

    /// True if writing `params` says nothing that did not come: what is missing is said by `extra`.
    fn says(&self, params: &ModelParams) -> bool {
        self.written(params).is_some_and(|written| is_within(&written, &Value::Object(self.fields.clone())))
    }
}

/// True if all fields of `part` are in `whole`.
fn is_within(part: &Value, whole: &Value) -> bool {
    match (part, whole) {
        (Value::Object(part), Value::Object(whole)) => {
            part.iter().all(|(name, part)| whole.get(name).is_some_and(|whole| is_within(part, whole)))
        }
        (Value::Object(_), _) => false,
        _ => true,
    }
}

fn texts(value: &Value) -> Option<Vec<String>> {
    value.as_array()?.iter().map(|text| text.as_str().map(str::to_owned)).collect()
}
