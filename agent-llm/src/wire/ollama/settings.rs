//! Everything of a request but its messages and its tools.

use agent_core::{ModelParams, model::Effort};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::OllamaProfile;
use crate::wire::settings::said;

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
    /// Always said: the server streams what nobody speaks of.
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

/// The options that need no other form, by our names and by the server's.
const OPTIONS: [(&str, &str); 5] = [
    ("temperature", "temperature"),
    ("top_p", "top_p"),
    ("max_tokens", "num_predict"),
    ("seed", "seed"),
    ("stop", "stop"),
];

fn options(params: &ModelParams, profile: &OllamaProfile) -> Map<String, Value> {
    let (mut options, mut said) = (profile.options.clone(), said(params));
    options.extend(OPTIONS.into_iter().filter_map(|(own, name)| Some((name.to_owned(), said.remove(own)?))));
    options
}

/// What the fields of a request say, as far as they say what every provider can be told.
#[cfg(feature = "requests")]
pub(super) fn params(said: &Map<String, Value>) -> ModelParams {
    use agent_core::OutputFormat;

    let option = |name: &str| Some(said.get("options")?.get(name)?.clone());
    let efforts = [Effort::None, Effort::Low, Effort::Medium, Effort::High];
    let effort = efforts.into_iter().find(|effort| said.get("think") == Some(&think(*effort)));
    let output = match said.get("format") {
        Some(Value::String(form)) if form == "json" => Some(OutputFormat::json()),
        Some(schema @ Value::Object(_)) => Some(OutputFormat::new("output", schema.clone())),
        _ => None,
    };
    crate::wire::settings::read(
        OPTIONS
            .map(|(own, name)| (own, option(name)))
            .into_iter()
            .chain([("effort", effort.map(|effort| json!(effort))), ("output", output.map(|output| json!(output)))]),
    )
}

pub(super) fn think(effort: Effort) -> Value {
    match effort {
        Effort::None => json!(false),
        Effort::Minimal => json!("low"),
        Effort::XHigh | Effort::Max => json!("high"),
        effort => json!(effort),
    }
}
