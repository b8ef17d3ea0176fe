//! Writing JSON, and a provider's own JSON back to it.

use agent_core::message::{Origin, Raw};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value, value::RawValue};

/// What is written: a provider's own JSON, or ours.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum Json<'a> {
    Own(&'a RawValue),
    Made(Value),
}

/// Writes JSON.
pub(crate) fn write(value: &impl Serialize, out: &mut Vec<u8>) {
    serde_json::to_writer(out, value).expect("a vector takes everything, and keys are texts");
}

/// The object without the fields of which nothing is said.
pub(crate) fn present(mut object: Value) -> Value {
    object.as_object_mut().into_iter().for_each(|fields| fields.retain(|_, value| !value.is_null()));
    object
}

/// Writes `value`, an object, with `extra` laid over it.
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

/// Lays `over` on `base`: objects field by field, anything else in its place.
pub(crate) fn lay(base: &mut Value, over: &Value) {
    match (base, over) {
        (Value::Object(base), Value::Object(over)) => {
            over.iter().for_each(|(name, over)| lay(base.entry(name.as_str()).or_insert(Value::Null), over));
        }
        (base, over) => *base = over.clone(),
    }
}

/// What must be laid on `base` to make it `wanted`, as far as laying can: it takes nothing away. None if that is nothing.
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

/// True if `written` is JSON of the same value as `json`.
#[cfg(feature = "requests")]
pub(crate) fn same(written: &impl Serialize, json: &RawValue) -> bool {
    let mut out = Vec::new();
    write(written, &mut out);
    same_bytes(&out, json)
}

/// As [`same`], for JSON that is written already.
#[cfg(feature = "requests")]
pub(crate) fn same_bytes(written: &[u8], json: &RawValue) -> bool {
    let value = |bytes| serde_json::from_slice::<Value>(bytes);
    written == json.get().as_bytes()
        || matches!((value(written), value(json.get().as_bytes())), (Ok(written), Ok(json)) if written == json)
}

/// The JSON in one form, however it was written: streamed or whole.
pub(crate) fn plain(json: &RawValue) -> String {
    serde_json::from_str::<Value>(json.get()).map_or_else(|_| json.get().to_owned(), |value| value.to_string())
}

/// True if `raw` may go back to `to` as it came. The model does not matter: its name is often an alias, a provider serves
/// many under one address, and it knows the fields of its own making.
pub(crate) fn knows(to: &Origin, raw: &Raw) -> bool {
    let from = raw.origin();
    (from.wire(), from.provider()) == (to.wire(), to.provider())
}

/// The provider's own JSON, if `to` is the provider.
pub(crate) fn own<'a>(to: &Origin, raw: Option<&'a Raw>) -> Option<&'a RawValue> {
    raw.filter(|raw| knows(to, raw)).map(Raw::raw_value)
}

/// A provider's own JSON, to be kept beside what it was read as.
pub(crate) fn raw(json: &RawValue, from: &Origin) -> Raw {
    Raw::new(from.clone(), json.to_owned())
}

/// A text where the API wants an object: the object that it is the JSON of, or else one that holds it.
pub(crate) struct Object<'a> {
    text: &'a str,
    json: Option<&'a RawValue>,
    field: &'static str,
}

impl<'a> Object<'a> {
    /// `field` is where a text that is no JSON of an object goes.
    pub(crate) fn of(text: &'a str, field: &'static str) -> Self {
        let is_object = text.trim_start().starts_with('{');
        Self { text, json: Some(text).filter(|_| is_object).and_then(|text| serde_json::from_str(text).ok()), field }
    }

    /// The text in a field, whatever it is.
    pub(crate) fn holding(text: &'a str, field: &'static str) -> Self {
        Self { text, json: None, field }
    }
}

impl Serialize for Object<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.json {
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
