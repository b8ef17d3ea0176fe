//! Everything of a request but its messages and its tools.

use agent_core::{ModelParams, model::Effort};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::OllamaProfile;

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

fn options(params: &ModelParams, profile: &OllamaProfile) -> Map<String, Value> {
    let mut options = profile.options.clone();
    let said = [
        ("temperature", params.temperature.map(Value::from)),
        ("top_p", params.top_p.map(Value::from)),
        ("num_predict", params.max_tokens.map(Value::from)),
        ("seed", params.seed.map(Value::from)),
        ("stop", Some(&params.stop).filter(|stop| !stop.is_empty()).map(|stop| json!(stop))),
    ];
    options.extend(said.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
    options
}

pub(super) fn think(effort: Effort) -> Value {
    match effort {
        Effort::None => json!(false),
        Effort::Minimal => json!("low"),
        Effort::XHigh | Effort::Max => json!("high"),
        effort => json!(effort),
    }
}
