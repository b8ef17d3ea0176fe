//! Request settings other than the conversation and the tools, in both directions.

#[cfg(feature = "requests")]
use agent_core::model::Effort;
use agent_core::{ModelParams, OutputFormat, Result, ToolChoice};
use serde_json::{Value, json};

use super::family::Family;
#[cfg(feature = "requests")]
use crate::wire::{
    claude::word,
    settings::{tool_choice, with_rest},
};
use crate::wire::{fields::Fields, schema::closed::closed, settings::Names};

const NAMES: Names =
    Names { max_tokens: "maxTokens", temperature: "temperature", top_p: "topP", stop: "stopSequences", seed: None };

/// Field with the list of tools and the tool choice.
pub(super) const TOOLS: &str = "toolConfig";

/// Encodes the settings.
///
/// # Errors
/// [`InvalidRequest`](agent_core::ErrorKind::InvalidRequest) for settings that the API, or the
/// model, does not support.
pub(super) fn settings(params: &ModelParams, has_tools: bool, family: &Family) -> Result<Fields<'static>> {
    let (mut fields, mut inference) = (Fields::default(), Fields::default());
    NAMES.write(params, params.max_tokens, &mut inference);
    fields.say("inferenceConfig", inference.some());
    let thinking = family.thinking(params, has_tools)?;
    fields.say("additionalModelRequestFields", Some(thinking).filter(|told| !told.is_empty()));
    fields.say("outputConfig", params.output.as_deref().and_then(form));
    let choice = params.tool_choice.as_ref().filter(|_| has_tools).and_then(choice);
    fields.say(TOOLS, choice.map(|choice| json!({"toolChoice": choice})));
    Ok(fields)
}

/// Encodes the output format; `None` without a schema, which the API does not support.
fn form(format: &OutputFormat) -> Option<Value> {
    let schema = (!format.schema.is_null()).then(|| closed(&format.schema).to_string())?;
    let mut said = json!({"name": format.name, "schema": schema});
    if let Some(description) = &format.description {
        said["description"] = description.as_str().into();
    }
    Some(json!({"textFormat": {"type": "json_schema", "structure": {"jsonSchema": said}}}))
}

/// Encodes the tool choice; `None` if the API does not support it, in which case the tools are left
/// out.
fn choice(choice: &ToolChoice) -> Option<Value> {
    match choice {
        ToolChoice::None => None,
        ToolChoice::Required => Some(json!({"any": {}})),
        ToolChoice::Tool(name) => Some(json!({"tool": {"name": name}})),
        _ => Some(json!({"auto": {}})),
    }
}

/// Decodes the fields whose encoding is unchanged; `extra` receives the others.
#[cfg(feature = "requests")]
pub(super) fn read(fields: &Value, has_tools: bool, family: &Family) -> ModelParams {
    let written =
        |params: &ModelParams| settings(params, has_tools, family).map_or(Value::Null, |fields| json!(fields));
    let mut params = NAMES.read(&fields["inferenceConfig"]);
    let said = &fields[TOOLS]["toolChoice"];
    let write = |known: &ToolChoice| choice(known).unwrap_or_default();
    params.tool_choice = tool_choice(said, said["tool"]["name"].as_str(), write).filter(|_| has_tools);
    for read in [read_effort, read_form] {
        let mut more = params.clone();
        read(fields, &mut more);
        if is_within(&written(&more), fields) {
            params = more;
        }
    }
    with_rest(params.clone(), &written(&params), fields)
}

#[cfg(feature = "requests")]
fn read_effort(fields: &Value, params: &mut ModelParams) {
    let places =
        ["/output_config/effort", "/reasoningConfig/maxReasoningEffort", "/reasoning_config", "/reasoning_effort"];
    let more = &fields["additionalModelRequestFields"];
    let said = places.iter().find_map(|place| more.pointer(place)?.as_str());
    params.effort = [Effort::Low, Effort::Medium, Effort::High].into_iter().find(|effort| said == Some(word(*effort)));
}

#[cfg(feature = "requests")]
fn read_form(fields: &Value, params: &mut ModelParams) {
    let Some(said) = fields["outputConfig"].pointer("/textFormat/structure/jsonSchema") else { return };
    let Some(Ok(schema)) = said["schema"].as_str().map(serde_json::from_str) else { return };
    let mut output = OutputFormat::new(said["name"].as_str().unwrap_or_default(), schema).strict(true);
    output.description = said["description"].as_str().map(str::to_owned);
    params.output = Some(output.into());
}

/// Returns true if `whole` contains all fields of `part`.
#[cfg(feature = "requests")]
fn is_within(part: &Value, whole: &Value) -> bool {
    match (part, whole) {
        (Value::Object(part), Value::Object(whole)) => {
            part.iter().all(|(name, part)| whole.get(name).is_some_and(|whole| is_within(part, whole)))
        }
        (Value::Object(_) | Value::Null, _) => false,
        _ => true,
    }
}
