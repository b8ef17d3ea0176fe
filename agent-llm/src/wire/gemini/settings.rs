//! Everything of a request but the contents and the tools.

use agent_core::{
    ModelParams, OutputFormat, ToolChoice,
    model::{Effort, Modality, Voice},
};
use serde::Serialize;
use serde_json::{Map, Value};

use super::{
    profile::{GeminiGeneration, GeminiProfile, GeminiSchemas},
    schema::open_api,
};
use crate::wire::json::{lay, write as write_json};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Settings<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_config: Option<ToolConfig<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    generation_config: Option<GenerationConfig<'a>>,
}

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct ToolConfig<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    function_calling_config: Option<FunctionCalling<'a>>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    include_server_side_tool_invocations: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FunctionCalling<'a> {
    mode: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    allowed_function_names: Option<[&'a str; 1]>,
}

#[derive(Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct GenerationConfig<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u64>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    stop_sequences: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_mime_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_json_schema: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_schema: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_config: Option<Thinking>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    response_modalities: Vec<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    speech_config: Option<Speech<'a>>,
}

#[derive(PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Speech<'a> {
    voice_config: VoiceConfig<'a>,
}

#[derive(PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct VoiceConfig<'a> {
    prebuilt_voice_config: Prebuilt<'a>,
}

#[derive(PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Prebuilt<'a> {
    voice_name: &'a str,
}

impl<'a> Speech<'a> {
    fn of(voice: &'a Voice) -> Self {
        Self { voice_config: VoiceConfig { prebuilt_voice_config: Prebuilt { voice_name: &voice.name } } }
    }
}

fn modality(modality: Modality) -> &'static str {
    match modality {
        Modality::Text => "TEXT",
        Modality::Image => "IMAGE",
        Modality::Audio => "AUDIO",
        Modality::Video => "VIDEO",
        _ => "DOCUMENT",
    }
}

/// How much a model is to think, in the words of its generation.
#[derive(PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Thinking {
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    include_thoughts: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_budget: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_level: Option<&'static str>,
}

/// What decides how settings are written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms<'a> {
    pub(super) profile: &'a GeminiProfile,
    pub(super) generation: GeminiGeneration,
    pub(super) model: &'a str,
}

impl Thinking {
    pub(super) fn of(effort: Effort, terms: Terms<'_>) -> Self {
        let include_thoughts = terms.profile.include_thoughts && effort != Effort::None;
        let (thinking_budget, thinking_level) = match terms.generation {
            GeminiGeneration::Gemini2 => (Some(budget(effort, terms.model)), None),
            GeminiGeneration::Gemini3 => (None, Some(level(effort, terms.model))),
        };
        Self { include_thoughts, thinking_budget, thinking_level }
    }

    /// At most so many tokens.
    fn counted(most: u64, terms: Terms<'_>) -> Self {
        let thinking_budget = Some(most.try_into().unwrap_or(u32::MAX));
        Self { include_thoughts: terms.profile.include_thoughts && most > 0, thinking_budget, thinking_level: None }
    }
}

/// In tokens. The larger models of this generation cannot do without thinking.
fn budget(effort: Effort, model: &str) -> u32 {
    match effort {
        Effort::None if is_pro(model) => 128,
        Effort::None => 0,
        Effort::Minimal => 512,
        Effort::Low => 1_024,
        Effort::Medium => 8_192,
        _ => 24_576,
    }
}

/// No model of this generation can be told not to think, and the larger ones not to think less than a little.
fn level(effort: Effort, model: &str) -> &'static str {
    match effort {
        Effort::None | Effort::Minimal if !is_pro(model) => "minimal",
        Effort::None | Effort::Minimal | Effort::Low => "low",
        Effort::Medium => "medium",
        _ => "high",
    }
}

fn is_pro(model: &str) -> bool {
    model.contains("-pro")
}

impl<'a> Settings<'a> {
    /// `calls` says whether there are functions to be called: the API refuses a word about them where there are none.
    pub(super) fn new(params: &'a ModelParams, calls: bool, terms: Terms<'_>) -> Self {
        let output: Option<&OutputFormat> = params.output.as_deref();
        let schema = output.map(|output| &output.schema).filter(|schema| !schema.is_null());
        let (response_json_schema, response_schema) = match terms.profile.schemas {
            GeminiSchemas::JsonSchema => (schema, None),
            GeminiSchemas::OpenApi => (None, schema.map(open_api)),
        };
        let generation_config = GenerationConfig {
            temperature: params.temperature,
            top_p: params.top_p,
            max_output_tokens: params.max_tokens,
            stop_sequences: &params.stop,
            seed: params.seed,
            response_mime_type: output.map(|_| JSON),
            response_json_schema,
            response_schema,
            thinking_config: match params.thinking_tokens {
                Some(most) => Some(Thinking::counted(most, terms)),
                None => params.effort.map(|effort| Thinking::of(effort, terms)),
            },
            response_modalities: params.modalities.iter().copied().map(modality).collect(),
            speech_config: params.voice.as_ref().map(Speech::of),
        };
        Self {
            tool_config: params.tool_choice.as_ref().filter(|_| calls).map(ToolConfig::new),
            generation_config: Some(generation_config).filter(|config| *config != GenerationConfig::default()),
        }
    }

    /// Has the answer show what the provider's own tools did. It is needed where functions are called beside them.
    pub(super) fn showing_work(mut self, shows: bool) -> Self {
        if shows {
            self.tool_config.get_or_insert_default().include_server_side_tool_invocations = true;
        }
        self
    }

    /// Writes the settings with `extra` laid over them, each with a comma after it.
    pub(super) fn write(&self, extra: &Map<String, Value>, out: &mut Vec<u8>) {
        if extra.is_empty() {
            self.tool_config.iter().for_each(|config| write_field("toolConfig", config, out));
            self.generation_config.iter().for_each(|config| write_field("generationConfig", config, out));
        } else {
            self.with(extra).iter().for_each(|(name, value)| write_field(name, value, out));
        }
    }

    /// The settings with `extra` laid over them.
    pub(super) fn with(&self, extra: &Map<String, Value>) -> Map<String, Value> {
        let mut settings = serde_json::to_value(self).expect("its keys are texts");
        lay_spelled(&mut settings, extra);
        match settings {
            Value::Object(settings) => settings,
            _ => Map::new(),
        }
    }
}

fn write_field(name: &str, value: &impl Serialize, out: &mut Vec<u8>) {
    write_json(&name, out);
    out.push(b':');
    write_json(value, out);
    out.push(b',');
}

/// The type of an answer in JSON.
pub(super) const JSON: &str = "application/json";

impl<'a> ToolConfig<'a> {
    fn new(choice: &'a ToolChoice) -> Self {
        let (mode, allowed_function_names) = match choice {
            ToolChoice::None => ("NONE", None),
            ToolChoice::Required => ("ANY", None),
            ToolChoice::Tool(name) => ("ANY", Some([name.as_str()])),
            _ => ("AUTO", None),
        };
        let function_calling_config = Some(FunctionCalling { mode, allowed_function_names });
        Self { function_calling_config, ..Self::default() }
    }
}

/// Lays `over` on `base`, field by field. The API takes each field in two spellings (`toolConfig`, `tool_config`), but not
/// in both at once: the spelling of `over` holds.
fn lay_spelled(base: &mut Value, over: &Map<String, Value>) {
    for (name, over) in over {
        if let Some(fields) = base.as_object_mut()
            && !fields.contains_key(name)
            && let Some(known) = other_spelling(name).and_then(|other| fields.remove(&other))
        {
            fields.insert(name.clone(), known);
        }
        match (&mut base[name], over) {
            (base @ Value::Object(_), Value::Object(over)) => lay_spelled(base, over),
            (base, over) => lay(base, over),
        }
    }
}

fn other_spelling(name: &str) -> Option<String> {
    let (mut camel, mut snake, mut begins_word) = (String::new(), String::new(), false);
    for letter in name.chars() {
        if letter == '_' {
            begins_word = true;
        } else {
            camel.push(if std::mem::take(&mut begins_word) { letter.to_ascii_uppercase() } else { letter });
        }
        if letter.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    [camel, snake].into_iter().find(|other| other != name)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_field_has_two_spellings_at_most() {
        assert_eq!(other_spelling("max_output_tokens").as_deref(), Some("maxOutputTokens"));
        assert_eq!(other_spelling("maxOutputTokens").as_deref(), Some("max_output_tokens"));
        assert_eq!(other_spelling("seed"), None);
    }

    #[test]
    fn the_spelling_of_what_is_laid_over_holds() {
        let mut base = json!({"generationConfig": {"topP": 0.5, "maxOutputTokens": 7}});
        let over = json!({"generation_config": {"max_output_tokens": 9, "extra": null}, "cachedContent": "c"});
        lay_spelled(&mut base, over.as_object().expect("an object"));
        let config = json!({"topP": 0.5, "max_output_tokens": 9, "extra": null});
        assert_eq!(base, json!({"generation_config": config, "cachedContent": "c"}));
    }
}
