//! Request settings other than messages and tools.

use agent_core::{ModelParams, model::Effort};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::OllamaProfile;
use crate::wire::{fields::Fields, settings::Names};

#[derive(Serialize)]
pub(super) struct Settings<'a> {
    model: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    think: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<Value>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    options: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    keep_alive: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    truncate: Option<bool>,
    /// Always set: the server streams by default.
    stream: bool,
}

impl<'a> Settings<'a> {
    pub(super) fn new(model: &'a str, params: &ModelParams, profile: &'a OllamaProfile, stream: bool) -> Self {
        let format = params.output.as_deref().map(|output| match &output.schema {
            Value::Null => json!("json"),
            schema => schema.clone(),
        });
        Self {
            model,
            think: params.effort.map(think),
            format,
            options: options(params, profile),
            keep_alive: profile.keep_alive.as_ref(),
            truncate: profile.truncate,
            stream,
        }
    }
}

const NAMES: Names =
    Names { max_tokens: "num_predict", temperature: "temperature", top_p: "top_p", stop: "stop", seed: Some("seed") };

fn options(params: &ModelParams, profile: &OllamaProfile) -> Map<String, Value> {
    let (mut options, mut said) = (profile.options.clone(), Fields::default());
    NAMES.write(params, params.max_tokens, &mut said);
    options.extend(Map::from(said));
    options
}

/// Decodes the settings that all providers share.
#[cfg(feature = "requests")]
pub(super) fn params(said: &Map<String, Value>) -> ModelParams {
    use agent_core::OutputFormat;

    let mut params = NAMES.read(said.get("options").unwrap_or(&Value::Null));
    let efforts = [Effort::None, Effort::Low, Effort::Medium, Effort::High];
    params.effort = efforts.into_iter().find(|effort| said.get("think") == Some(&think(*effort)));
    params.output = match said.get("format") {
        Some(Value::String(form)) if form == "json" => Some(OutputFormat::json().into()),
        Some(schema @ Value::Object(_)) => Some(OutputFormat::new("output", schema.clone()).into()),
        _ => None,
    };
    params
}

pub(super) fn think(effort: Effort) -> Value {
    match effort {
        Effort::None => json!(false),
        Effort::Minimal => json!("low"),
        Effort::XHigh | Effort::Max => json!("high"),
        effort => json!(effort),
    }
}
