//! Request settings other than the contents and the tools, in both directions.

#[cfg(feature = "requests")]
use agent_core::OutputFormat;
use agent_core::{ModelParams, ToolChoice, model::Effort};
use serde_json::{Map, Value, json};

use super::{
    GeminiCodec,
    profile::{GeminiGeneration, GeminiSchemas},
};
#[cfg(feature = "requests")]
use crate::wire::settings::{tool_choice, with_rest};
use crate::wire::{fields::Fields, json::lay, schema::open_api::open_api, settings::Names};

const NAMES: Names = Names {
    max_tokens: "maxOutputTokens",
    temperature: "temperature",
    top_p: "topP",
    stop: "stopSequences",
    seed: Some("seed"),
};

/// Media type of a JSON answer.
const JSON: &str = "application/json";

impl GeminiSchemas {
    /// Returns the field of the answer's schema.
    fn field(self) -> &'static str {
        match self {
            Self::JsonSchema => "responseJsonSchema",
            Self::OpenApi => "responseSchema",
        }
    }

    /// Converts the schema to this dialect.
    fn of(self, schema: &Value) -> Value {
        match self {
            Self::JsonSchema => schema.clone(),
            Self::OpenApi => open_api(schema),
        }
    }
}

/// Encodes the settings. `calls` is true if there are functions to call: the API rejects a
/// function-calling configuration without functions. With `shows_work`, the answer includes the
/// calls of provider-side tools.
pub(super) fn settings(params: &ModelParams, calls: bool, shows_work: bool, codec: &GeminiCodec) -> Fields<'static> {
    let (mut tools, mut config) = (Fields::default(), Fields::default());
    tools.say("functionCallingConfig", params.tool_choice.as_ref().filter(|_| calls).map(calling));
    tools.say("includeServerSideToolInvocations", shows_work.then_some(true));

    NAMES.write(params, params.max_tokens, &mut config);
    let schemas = codec.profile.schemas;
    let schema = params.output.as_ref().map(|output| &output.schema).filter(|schema| !schema.is_null());
    config.say("responseMimeType", params.output.as_ref().map(|_| JSON));
    config.say(schemas.field(), schema.map(|schema| schemas.of(schema)));
    config.say("thinkingConfig", thinking(params, codec));
    let in_capitals = |modality| Some(json!(modality).as_str()?.to_uppercase());
    let modalities: Vec<_> = params.modalities.iter().filter_map(in_capitals).collect();
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

/// Encodes the thinking configuration: a token budget, or an effort in the terms of the model's
/// generation.
fn thinking(params: &ModelParams, codec: &GeminiCodec) -> Option<Value> {
    let is_pro = codec.origin.model().contains("-pro");
    let (mut told, is_to_think) = match (params.thinking_tokens, params.effort) {
        (Some(most), _) => (json!({"thinkingBudget": u32::try_from(most).unwrap_or(u32::MAX)}), most > 0),
        (None, Some(effort)) => {
            let told = match codec.generation {
                GeminiGeneration::Gemini2 => json!({"thinkingBudget": budget(effort, is_pro)}),
                GeminiGeneration::Gemini3 => json!({"thinkingLevel": level(effort, is_pro)}),
            };
            (told, effort != Effort::None)
        }
        (None, None) => return None,
    };
    if codec.profile.include_thoughts && is_to_think {
        told["includeThoughts"] = true.into();
    }
    Some(told)
}

/// Returns the budget in tokens. The larger models of this generation cannot disable thinking.
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

/// Returns the level. No model of this generation can disable thinking, and the larger ones support
/// no level below low.
fn level(effort: Effort, is_pro: bool) -> &'static str {
    match effort {
        Effort::None | Effort::Minimal if !is_pro => "minimal",
        Effort::None | Effort::Minimal | Effort::Low => "low",
        Effort::Medium => "medium",
        _ => "high",
    }
}

/// Decodes parameters in the spelling used for writing. Fields that they would not write unchanged
/// are kept in `extra`, as are fields in the other spelling.
#[cfg(feature = "requests")]
pub(super) fn read(fields: &Value, calls: bool, codec: &GeminiCodec) -> ModelParams {
    /// Name of an output format, which the API does not have.
    const FORM: &str = "answer";

    let config = &fields["generationConfig"];
    let mut params = NAMES.read(config);
    let efforts = [Effort::None, Effort::Minimal, Effort::Low, Effort::Medium, Effort::High];
    let told = |effort| json!(thinking(&ModelParams::default().effort(effort), codec));
    params.effort = efforts.into_iter().find(|effort| config["thinkingConfig"] == told(*effort));
    let schemas = codec.profile.schemas;
    let schema = &config[schemas.field()];
    if config["responseMimeType"] == JSON && (schema.is_null() || schemas.of(schema) == *schema) {
        params.output = Some(OutputFormat::new(FORM, schema.clone()).into());
    }
    let said = &fields["toolConfig"]["functionCallingConfig"];
    let name = said["allowedFunctionNames"][0].as_str();
    params.tool_choice = tool_choice(said, name, calling).filter(|_| calls);
    let written = json!(settings(&params, calls, false, codec));
    with_rest(params, &written, fields)
}

/// Overlays `base` with `over`, field by field. The API accepts each field in two spellings
/// (`toolConfig`, `tool_config`), but not both at once: the spelling in `over` wins.
pub(super) fn lay_spelled(base: &mut Value, over: &Map<String, Value>) {
    for (name, over) in over {
        if let Some(fields) = base.as_object_mut()
            && let Some(other) = fields.keys().find(|other| *other != name && is_spelling_of(other, name)).cloned()
            && let Some(known) = fields.remove(&other)
        {
            fields.insert(name.clone(), known);
        }
        match (&mut base[name], over) {
            (base @ Value::Object(_), Value::Object(over)) => lay_spelled(base, over),
            (base, over) => lay(base, over),
        }
    }
}

/// Returns true if both are spellings of the same name, such as `toolConfig` and `tool_config`.
fn is_spelling_of(name: &str, other: &str) -> bool {
    let letters = |name: &str| name.replace('_', "").to_lowercase();
    letters(name) == letters(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_spelling_of_what_is_laid_over_holds() {
        let mut base = json!({"generationConfig": {"topP": 0.5, "maxOutputTokens": 7}});
        let over = json!({"generation_config": {"max_output_tokens": 9, "extra": null}, "cachedContent": "c"});
        lay_spelled(&mut base, over.as_object().expect("an object"));
        let config = json!({"topP": 0.5, "max_output_tokens": 9, "extra": null});
        assert_eq!(base, json!({"generation_config": config, "cachedContent": "c"}));
    }
}
