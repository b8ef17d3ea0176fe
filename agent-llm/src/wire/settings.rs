//! The settings of a request, in both directions: most wires call what [`ModelParams`] says as we do, or almost.

use agent_core::{ModelParams, OutputFormat};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};

use super::json::present;

/// The fields of a request, in the order in which they are written.
#[derive(Debug, Default)]
pub(crate) struct Fields<'a>(Vec<(&'a str, Value)>);

impl<'a> Fields<'a> {
    /// Adds a field, unless nothing is said of it.
    pub(crate) fn put(&mut self, name: &'a str, value: Option<impl Into<Value>>) {
        self.0.extend(value.map(|value| (name, value.into())));
    }

    /// True if something is said of this field.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(known, _)| *known == name)
    }
}

impl Serialize for Fields<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

#[cfg(feature = "requests")]
impl From<Fields<'_>> for Map<String, Value> {
    fn from(fields: Fields<'_>) -> Self {
        fields.0.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }
}

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
