//! The settings of a request, in both directions: most wires call what [`ModelParams`] says as we do, or almost.

#[cfg(feature = "requests")]
use agent_core::ToolChoice;
use agent_core::{ModelParams, OutputFormat};
#[cfg(feature = "requests")]
use serde::Deserialize;
use serde_json::{Map, Value, json};

#[cfg(feature = "requests")]
use super::json::laid_over;
use super::{fields::Fields, json::present};

/// What the parameters say, by the names of their fields.
pub(crate) fn said(params: &ModelParams) -> Map<String, Value> {
    match serde_json::to_value(params) {
        Ok(Value::Object(said)) => said,
        _ => Map::new(),
    }
}

/// The parameters whose fields say this. What is not of a field's form is left out: the request keeps it as it came.
#[cfg(feature = "requests")]
pub(crate) fn read<'a>(said: impl IntoIterator<Item = (&'a str, Option<Value>)>) -> ModelParams {
    let field = |(name, value): (&str, Option<Value>)| Some((name.to_owned(), value?));
    let is_read = |(name, value): &(String, Value)| {
        serde_json::from_value::<ModelParams>(json!({name.as_str(): value.clone()})).is_ok()
    };
    let fields: Map<_, _> = said.into_iter().filter_map(field).filter(is_read).collect();
    serde_json::from_value(fields.into()).unwrap_or_default()
}

/// The parameters, of which a request would be `written` like this by itself, with what else was `said` as extra fields.
#[cfg(feature = "requests")]
pub(crate) fn with_rest(mut params: ModelParams, written: &Value, said: &Value) -> ModelParams {
    if let Some(Value::Object(extra)) = laid_over(written, said) {
        params.extra = extra;
    }
    params
}

/// What the form of an answer is called, is for and is made of: fields that stand in the API as they stand here.
pub(crate) fn form(output: &OutputFormat) -> Value {
    let OutputFormat { name, description, schema, strict, .. } = output;
    present(json!({"name": name, "description": description, "schema": schema, "strict": strict.then_some(true)}))
}

/// The fields of an output format that says what [`form`] writes. What else is said beside them does not matter.
#[cfg(feature = "requests")]
pub(crate) fn read_form(said: &Value) -> Value {
    let fields = ["name", "description", "schema", "strict"].into_iter();
    fields.filter_map(|name| Some((name, said.get(name).filter(|value| !value.is_null())?.clone()))).collect()
}

/// What a wire calls the settings that all models have.
pub(crate) struct Names {
    pub(crate) max_tokens: &'static str,
    pub(crate) temperature: &'static str,
    pub(crate) top_p: &'static str,
    pub(crate) stop: &'static str,
    /// None of a wire that has no word for it.
    pub(crate) seed: Option<&'static str>,
}

impl Names {
    /// Says `params`, and that an answer has at most `max_tokens`: for those that do not say, some wires must.
    pub(crate) fn write(&self, params: &ModelParams, max_tokens: Option<u64>, fields: &mut Fields<'_>) {
        fields.say(self.max_tokens, max_tokens);
        fields.say(self.temperature, params.temperature);
        fields.say(self.top_p, params.top_p);
        fields.say(self.stop, Some(&*params.stop).filter(|stop| !stop.is_empty()));
        if let Some(seed) = self.seed {
            fields.say(seed, params.seed);
        }
    }

    /// The parameters that these fields say.
    #[cfg(feature = "requests")]
    pub(crate) fn read(&self, fields: &Value) -> ModelParams {
        let mut params = ModelParams::default();
        params.max_tokens = fields[self.max_tokens].as_u64();
        params.temperature = fields[self.temperature].as_f64();
        params.top_p = fields[self.top_p].as_f64();
        params.stop = Vec::deserialize(&fields[self.stop]).unwrap_or_default();
        params.seed = self.seed.and_then(|name| fields[name].as_i64());
        params
    }
}

/// The choice that is written as `said`: reading is writing, sought. `name` is the tool that is named there.
#[cfg(feature = "requests")]
pub(crate) fn tool_choice(
    said: &Value,
    name: Option<&str>,
    write: impl Fn(&ToolChoice) -> Value,
) -> Option<ToolChoice> {
    let named = name.map(|name| ToolChoice::Tool(name.to_owned()));
    let choices = [ToolChoice::Auto, ToolChoice::None, ToolChoice::Required].into_iter().chain(named);
    choices.into_iter().find(|choice| !said.is_null() && write(choice) == *said)
}
