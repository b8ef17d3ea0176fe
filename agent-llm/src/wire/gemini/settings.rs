//! Everything of a request but the contents and the tools: written, and read.

use std::mem::take;

#[cfg(feature = "requests")]
use agent_core::OutputFormat;
use agent_core::{
    ModelParams, ToolChoice,
    model::{Effort, Modality},
};
use serde_json::{Map, Value, json};

use super::{
    GeminiCodec,
    profile::{GeminiGeneration, GeminiSchemas},
};
use crate::wire::{fields::Fields, json::lay, schema::open_api::open_api, settings::Names};
#[cfg(feature = "requests")]
use crate::wire::{json::laid_over, settings::tool_choice};

const NAMES: Names = Names {
    max_tokens: "maxOutputTokens",
    temperature: "temperature",
    top_p: "topP",
    stop: "stopSequences",
    seed: Some("seed"),
};

/// The type of an answer in JSON.
const JSON: &str = "application/json";

impl GeminiSchemas {
    /// The field of the answer's schema.
    fn field(self) -> &'static str {
        match self {
            Self::JsonSchema => "responseJsonSchema",
            Self::OpenApi => "responseSchema",
        }
    }

    /// The schema in this form.
    fn of(self, schema: &Value) -> Value {
        match self {
            Self::JsonSchema => schema.clone(),
            Self::OpenApi => open_api(schema),
        }
    }
}

/// The settings. `calls` says whether there are functions to be called: the API refuses a word about them where there are none.
/// An answer that `shows_work` holds what the provider's own tools did.
pub(super) fn settings(params: &ModelParams, calls: bool, shows_work: bool, codec: &GeminiCodec) -> Fields<'static> {
    let (mut tools, mut config) = (Fields::default(), Fields::default());
    tools.say("functionCallingConfig", params.tool_choice.as_ref().filter(|_| calls).map(calling));
    tools.say("includeServerSideToolInvocations", shows_work.then_some(true));

    NAMES.write(params, params.max_tokens, &mut config);
    let schemas = codec.profile.schemas;
    let schema = params.output.as_ref().map(|output| &output.schema).filter(|schema| !schema.is_null());
    config.say("responseMimeType", params.output.as_ref().map(|_| JSON));
    config.say(schemas.field(), schema.map(|schema| schemas.of(schema)));
    config.say(
        "thinkingConfig",
        match params.thinking_tokens {
            Some(most) => Some(counted(most, codec)),
            None => params.effort.map(|effort| thinking(effort, codec)),
        },
    );
    let modalities: Vec<_> = params.modalities.iter().copied().map(modality).collect();
    config.say("responseModalities", Some(modalities).filter(|modalities| !modalities.is_empty()));
    let voice = |name| json!({"voiceConfig": {"prebuiltVoiceConfig": {"voiceName": name}}});
    config.say("speechConfig", params.voice.as_ref().map(|said| voice(&said.name)));

    let mut settings = Fields::default();
    settings.say("toolConfig", tools.some());
    settings.say("generationConfig", config.some());
    settings
}

fn calling(choice: &ToolChoice) -> Value {
    match choice {
        ToolChoice::None => json!({"mode": "NONE"}),
        ToolChoice::Required => json!({"mode": "ANY"}),
        ToolChoice::Tool(name) => json!({"mode": "ANY", "allowedFunctionNames": [name]}),
        _ => json!({"mode": "AUTO"}),
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
fn thinking(effort: Effort, codec: &GeminiCodec) -> Value {
    let is_pro = codec.origin.model().contains("-pro");
    let mut told = match codec.generation {
        GeminiGeneration::Gemini2 => json!({"thinkingBudget": budget(effort, is_pro)}),
        GeminiGeneration::Gemini3 => json!({"thinkingLevel": level(effort, is_pro)}),
    };
    if codec.profile.include_thoughts && effort != Effort::None {
        told["includeThoughts"] = true.into();
    }
    told
}

/// At most so many tokens.
fn counted(most: u64, codec: &GeminiCodec) -> Value {
    let mut told = json!({"thinkingBudget": u32::try_from(most).unwrap_or(u32::MAX)});
    if codec.profile.include_thoughts && most > 0 {
        told["includeThoughts"] = true.into();
    }
    told
}

/// In tokens. The larger models of this generation cannot do without thinking.
fn budget(effort: Effort, is_pro: bool) -> u32 {
    match effort {
        Effort::None if is_pro => 128,
        Effort::None => 0,
        Effort::Minimal => 512,
        Effort::Low => 1_024,
        Effort::Medium => 8_192,
        _ => 24_576,
    }
}

/// No model of this generation can be told not to think, and the larger ones not to think less than a little.
fn level(effort: Effort, is_pro: bool) -> &'static str {
    match effort {
        Effort::None | Effort::Minimal if !is_pro => "minimal",
        Effort::None | Effort::Minimal | Effort::Low => "low",
        Effort::Medium => "medium",
        _ => "high",
    }
}

/// Reads parameters in the spelling in which they are written. What they would not write again as it stands in `fields` is
/// kept in `extra`, with fields in the other spelling.
#[cfg(feature = "requests")]
pub(super) fn read(fields: &Value, calls: bool, codec: &GeminiCodec) -> ModelParams {
    /// What an answer's form is called, where the API has no name for it.
    const FORM: &str = "answer";

    let config = &fields["generationConfig"];
    let mut params = NAMES.read(config);
    let efforts = [Effort::None, Effort::Minimal, Effort::Low, Effort::Medium, Effort::High];
    params.effort = efforts.into_iter().find(|effort| config["thinkingConfig"] == thinking(*effort, codec));
    let schemas = codec.profile.schemas;
    let schema = &config[schemas.field()];
    if config["responseMimeType"] == JSON && (schema.is_null() || schemas.of(schema) == *schema) {
        params.output = Some(OutputFormat::new(FORM, schema.clone()).into());
    }
    let said = &fields["toolConfig"]["functionCallingConfig"];
    let name = said["allowedFunctionNames"][0].as_str();
    params.tool_choice = tool_choice(said, name, calling).filter(|_| calls);
    let written = json!(settings(&params, calls, false, codec));
    if let Some(Value::Object(extra)) = laid_over(&written, fields) {
        params.extra = extra;
    }
    params
}

/// Lays `over` on `base`, field by field. The API takes each field in two spellings (`toolConfig`, `tool_config`), but not
/// in both at once: the spelling of `over` holds.
pub(super) fn lay_spelled(base: &mut Value, over: &Map<String, Value>) {
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
            camel.push(if take(&mut begins_word) { letter.to_ascii_uppercase() } else { letter });
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
