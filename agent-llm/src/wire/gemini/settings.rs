//! Everything of a request but the contents and the tools: written, and read.

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

/// How much a model is to think: at most so many tokens, or an effort in the words of its generation.
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

/// Lays `over` on `base`, field by field. The API takes each field in two spellings (`toolConfig`, `tool_config`), but not
/// in both at once: the spelling of `over` holds.
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

/// True if both are the same words, as `toolConfig` and `tool_config` are.
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
