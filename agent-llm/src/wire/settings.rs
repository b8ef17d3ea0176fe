//! Request settings in both directions; most wires use the names of [`ModelParams`], or similar
//! ones.

#[cfg(feature = "requests")]
use agent_core::ToolChoice;
use agent_core::{ModelParams, OutputFormat};
#[cfg(feature = "requests")]
use serde::Deserialize;
use serde_json::{Map, Value, json};

#[cfg(feature = "requests")]
use super::json::laid_over;
use super::{fields::Fields, json::present};

/// Returns the set parameters, by field name.
pub(crate) fn said(params: &ModelParams) -> Map<String, Value> {
    match serde_json::to_value(params) {
        Ok(Value::Object(said)) => said,
        _ => Map::new(),
    }
}

/// Builds parameters from fields. Values of an invalid type are left out, and the request keeps
/// them raw.
#[cfg(feature = "requests")]
pub(crate) fn read<'a>(said: impl IntoIterator<Item = (&'a str, Option<Value>)>) -> ModelParams {
    let field = |(name, value): (&str, Option<Value>)| Some((name.to_owned(), value?));
    let is_read = |(name, value): &(String, Value)| {
        serde_json::from_value::<ModelParams>(json!({name.as_str(): value.clone()})).is_ok()
    };
    let fields: Map<_, _> = said.into_iter().filter_map(field).filter(is_read).collect();
    serde_json::from_value(fields.into()).unwrap_or_default()
}

/// Adds the rest as extra fields: everything in `said` that the encoding `written` of the
/// parameters does not produce.
#[cfg(feature = "requests")]
pub(crate) fn with_rest(mut params: ModelParams, written: &Value, said: &Value) -> ModelParams {
    if let Some(Value::Object(extra)) = laid_over(written, said) {
        params.extra = extra;
    }
    params
}

/// Returns name, description and schema of an output format, whose fields have the same names in
/// the API.
pub(crate) fn form(output: &OutputFormat) -> Value {
    let OutputFormat { name, description, schema, strict, .. } = output;
    present(json!({"name": name, "description": description, "schema": schema, "strict": strict.then_some(true)}))
}

/// Returns the fields of an output format that [`form`] writes, ignoring all others.
#[cfg(feature = "requests")]
pub(crate) fn read_form(said: &Value) -> Value {
    let fields = ["name", "description", "schema", "strict"].into_iter();
    fields.filter_map(|name| Some((name, said.get(name).filter(|value| !value.is_null())?.clone()))).collect()
}

/// A wire's names for the common settings.
pub(crate) struct Names {
    pub(crate) max_tokens: &'static str,
    pub(crate) temperature: &'static str,
    pub(crate) top_p: &'static str,
    pub(crate) stop: &'static str,
    /// `None` for a wire without a seed.
    pub(crate) seed: Option<&'static str>,
}

impl Names {
    /// Writes `params` with the output limit `max_tokens`, which some wires require.
    pub(crate) fn write(&self, params: &ModelParams, max_tokens: Option<u64>, fields: &mut Fields<'_>) {
        fields.say(self.max_tokens, max_tokens);
        fields.say(self.temperature, params.temperature);
        fields.say(self.top_p, params.top_p);
        fields.say(self.stop, Some(&*params.stop).filter(|stop| !stop.is_empty()));
        if let Some(seed) = self.seed {
            fields.say(seed, params.seed);
        }
    }

    /// Decodes the parameters from these fields.
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

/// Finds the choice whose encoding equals `said`: decoding by search. `name` is the tool that is
/// named there.
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
