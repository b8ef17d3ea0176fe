//! Serialisation of JSON, and of a provider's own JSON.

use std::borrow::Cow;

use agent_core::message::{Origin, Raw};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value, value::RawValue};

use super::surrogates::mend_surrogates;

/// JSON to write: the provider's own, or generated.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum Json<'a> {
    Own(&'a RawValue),
    Made(Value),
}

/// Serialises JSON.
pub(crate) fn write(value: &impl Serialize, out: &mut Vec<u8>) {
    serde_json::to_writer(out, value).expect("a vector takes everything, and keys are texts");
}

/// Removes null fields from the object.
pub(crate) fn present(mut object: Value) -> Value {
    object.as_object_mut().into_iter().for_each(|fields| fields.retain(|_, value| !value.is_null()));
    object
}

/// Serialises `value`, an object, overlaid with `extra`.
pub(crate) fn write_with(value: &impl Serialize, extra: &Map<String, Value>, out: &mut Vec<u8>) {
    if extra.is_empty() {
        return write(value, out);
    }
    let mut value = serde_json::to_value(value).expect("its keys are texts");
    for (name, over) in extra {
        lay(&mut value[name], over);
    }
    write(&value, out);
}

/// Overlays `base` with `over`: objects field by field; any other value is replaced.
pub(crate) fn lay(base: &mut Value, over: &Value) {
    match (base, over) {
        (Value::Object(base), Value::Object(over)) => {
            over.iter().for_each(|(name, over)| lay(base.entry(name.as_str()).or_insert(Value::Null), over));
        }
        (base, over) => *base = over.clone(),
    }
}

/// Returns the overlay that turns `base` into `wanted`, as far as possible: an overlay removes
/// nothing. `None` if it is empty.
#[cfg(feature = "requests")]
pub(crate) fn laid_over(base: &Value, wanted: &Value) -> Option<Value> {
    match (base, wanted) {
        (Value::Object(base), Value::Object(wanted)) => {
            let fields = wanted.iter().filter_map(|(name, wanted)| match base.get(name) {
                Some(base) => Some((name.clone(), laid_over(base, wanted)?)),
                None => Some((name.clone(), wanted.clone())),
            });
            let fields: Map<_, _> = fields.collect();
            (!fields.is_empty()).then_some(Value::Object(fields))
        }
        (Value::Number(base), Value::Number(wanted)) if base.as_f64() == wanted.as_f64() => None,
        (base, wanted) => (base != wanted).then(|| wanted.clone()),
    }
}

/// Returns true if `written` serialises to JSON with the same value as `json`.
#[cfg(feature = "requests")]
pub(crate) fn same(written: &impl Serialize, json: &RawValue) -> bool {
    let mut out = Vec::new();
    write(written, &mut out);
    same_bytes(&out, json)
}

/// As [`same`], for serialised JSON.
#[cfg(feature = "requests")]
pub(crate) fn same_bytes(written: &[u8], json: &RawValue) -> bool {
    let value = |bytes| serde_json::from_slice::<Value>(bytes);
    written == json.get().as_bytes()
        || matches!((value(written), value(json.get().as_bytes())), (Ok(written), Ok(json)) if written == json)
}

/// Normalises JSON, so that streamed and whole JSON compare equal.
pub(crate) fn plain(json: &RawValue) -> String {
    serde_json::from_str::<Value>(json.get()).map_or_else(|_| json.get().to_owned(), |value| value.to_string())
}

/// Returns true if `raw` may be sent to `to` unchanged. The model is not compared: its name is
/// often an alias, a provider serves many models at one URL, and it accepts the fields that it
/// generated.
pub(crate) fn knows(to: &Origin, raw: &Raw) -> bool {
    let from = raw.origin();
    (from.wire(), from.provider()) == (to.wire(), to.provider())
}

/// Returns the provider's own JSON, if `to` is that provider.
pub(crate) fn own<'a>(to: &Origin, raw: Option<&'a Raw>) -> Option<&'a RawValue> {
    raw.filter(|raw| knows(to, raw)).map(Raw::raw_value)
}

/// Wraps a provider's own JSON, to be kept alongside the decoded content.
pub(crate) fn raw(json: &RawValue, from: &Origin) -> Raw {
    Raw::new(from.clone(), json.to_owned())
}

/// A text for an API field that requires an object: parsed as an object, or wrapped in one.
pub(crate) struct Object<'a> {
    text: &'a str,
    json: Option<Cow<'a, RawValue>>,
    field: &'static str,
}

impl<'a> Object<'a> {
    /// `field` receives a text that is not a JSON object.
    pub(crate) fn of(text: &'a str, field: &'static str) -> Self {
        let object = Some(text.trim()).filter(|text| text.starts_with('{'));
        // Without escapes of lone surrogates, which JSON parsers reject.
        let json = object.and_then(|object| match mend_surrogates(object) {
            Cow::Borrowed(object) => serde_json::from_str(object).ok().map(Cow::Borrowed),
            Cow::Owned(object) => RawValue::from_string(object).ok().map(Cow::Owned),
        });
        Self { text, json, field }
    }

    /// Wraps the text in a field, whatever it is.
    pub(crate) fn holding(text: &'a str, field: &'static str) -> Self {
        Self { text, json: None, field }
    }
}

impl Serialize for Object<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.json {
            Some(json) => json.serialize(serializer),
            None => serializer.collect_map([(self.field, self.text)]),
        }
    }
}

#[cfg(all(test, feature = "requests"))]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_differs_is_what_must_be_laid_over() {
        let base = json!({"a": 1.0, "b": {"c": 1, "d": [1]}, "more": 1});
        let wanted = json!({"a": 1, "b": {"c": 1, "d": [2], "e": null}});
        let over = laid_over(&base, &wanted).expect("a difference");
        assert_eq!(over, json!({"b": {"d": [2], "e": null}}));
        let mut laid = base.clone();
        lay(&mut laid, &over);
        assert_eq!(laid, json!({"a": 1.0, "b": {"c": 1, "d": [2], "e": null}, "more": 1}));
        assert_eq!(laid_over(&base, &json!({"a": 1})), None);
    }
}
