//! Conversion of text to the type that the schema requires, where only one reading is possible.

use std::collections::BTreeSet;

use agent_core::exact;
use serde_json::{Number, Value};

use super::{
    read::{DEEPEST, Repairs, depth, json_or_mended},
    shape::Shape,
    types::{Type, Types},
};

impl<'a> Shape<'a> {
    /// Returns true if the root's property `name` may be text: its text is then kept unchanged.
    pub(super) fn takes_text(self, name: &str) -> bool {
        self.of_property(&[self.root()], name).iter().any(|schema| self.types(schema).contains(Type::String))
    }

    /// Converts the fields of an object that matches the root; returns the names of the converted
    /// fields. Text for the properties `texts` is kept.
    pub(super) fn coerce_arguments(self, args: &mut Value, texts: &BTreeSet<String>) -> Vec<String> {
        let fields = args.as_object_mut().into_iter().flatten();
        let fields = fields.filter(|(name, value)| !(value.is_string() && texts.contains(*name)));
        let converted = fields.filter_map(|(name, value)| {
            let schemas = self.of_property(&[self.root()], name);
            self.coerce(value, &schemas, DEEPEST - 1).then(|| format!("'{name}'"))
        });
        converted.collect()
    }

    /// Converts a value of the root, and everything nested in it.
    pub(crate) fn coerce_value(self, value: &mut Value) {
        self.coerce(value, &[self.root()], DEEPEST);
    }

    /// Converts `value`, and everything nested in it, to a type that one of `schemas` accepts;
    /// returns true if anything was converted. Values parsed from text may nest `room` deep.
    fn coerce(self, value: &mut Value, schemas: &[&'a Value], room: usize) -> bool {
        if schemas.is_empty() {
            return false;
        }
        let types = schemas.iter().fold(Types::NONE, |all, s| all.union(self.types(s)));
        let wanted = match &*value {
            Value::String(text) => self.convert(text, types, schemas).filter(|v| depth(v) <= room),
            Value::Number(n) => whole(n, types),
            _ => None,
        };
        let mut converted = wanted.is_some();
        if let Some(wanted) = wanted {
            *value = wanted;
        }
        match value {
            Value::Array(items) => {
                for (i, item) in items.iter_mut().enumerate() {
                    converted |= self.coerce(item, &self.of_item(schemas, i), room - 1);
                }
            }
            Value::Object(fields) => {
                for (name, field) in fields {
                    converted |= self.coerce(field, &self.of_property(schemas, name), room - 1);
                }
            }
            _ => {}
        }
        converted
    }

    fn convert(self, text: &str, types: Types, schemas: &[&'a Value]) -> Option<Value> {
        if types.contains(Type::String) {
            return None;
        }
        let text = text.trim();
        if types.contains(Type::Null) && text.eq_ignore_ascii_case("null") {
            return Some(Value::Null);
        }
        let mut wanted = types.without(Type::Null);
        if wanted.contains(Type::Number) {
            wanted = wanted.without(Type::Integer);
        }
        let mut only = wanted.iter();
        match (only.next()?, only.next()) {
            (Type::Boolean, None) => boolean(text),
            (Type::Integer | Type::Number, None) => number(text, types),
            (Type::Array, None) => self.array(text, schemas),
            (Type::Object, None) => structure(text).filter(Value::is_object),
            _ => exact::from_str(text).ok().filter(|value| types.contains(Type::of(value))),
        }
    }

    /// Parses JSON, or a comma-separated list if the item type allows it.
    fn array(self, text: &str, schemas: &[&'a Value]) -> Option<Value> {
        if text.starts_with(['[', '{']) {
            return structure(text).filter(Value::is_array);
        }
        let items = self.of_item(schemas, 0);
        let simple = Types::ANY.without(Type::Array).without(Type::Object);
        let writable = items.is_empty() || items.iter().any(|s| !self.types(s).intersect(simple).is_empty());
        writable.then(|| text.split(',').map(str::trim).filter(|s| !s.is_empty()).map(Value::from).collect())
    }

    pub(super) fn of_property(self, schemas: &[&'a Value], name: &str) -> Vec<&'a Value> {
        let parts: Vec<_> = schemas.iter().flat_map(|s| self.parts(s)).collect();
        let named: Vec<_> = parts.iter().filter_map(|p| p.get("properties")?.get(name)).collect();
        if named.is_empty() { parts.iter().filter_map(|p| p.get("additionalProperties")).collect() } else { named }
    }

    pub(super) fn of_item(self, schemas: &[&'a Value], index: usize) -> Vec<&'a Value> {
        let parts = schemas.iter().flat_map(|s| self.parts(s));
        let item = |list: &'a Value| match list {
            Value::Array(places) => places.get(index),
            every => Some(every),
        };
        parts.filter_map(|p| p.get("prefixItems").and_then(item).or_else(|| item(p.get("items")?))).collect()
    }
}

fn boolean(text: &str) -> Option<Value> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "1" | "yes" | "on" => Some(true.into()),
        "false" | "0" | "no" | "off" => Some(false.into()),
        _ => None,
    }
}

fn number(text: &str, types: Types) -> Option<Value> {
    if exact::is_long_number(text) {
        return None; // its digits are the number
    }
    let n: Number = serde_json::from_str(text).ok()?;
    whole(&n, types).or_else(|| (types.contains(Type::Number) || !n.is_f64()).then_some(Value::Number(n)))
}

/// Converts `5.0` to `5` where only an integer is valid: some models write every number with a
/// fraction.
fn whole(n: &Number, types: Types) -> Option<Value> {
    /// Up to this value, every integer has an exact float.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if !n.is_f64() || types.contains(Type::Number) || !types.contains(Type::Integer) {
        return None;
    }
    let float = n.as_f64().filter(|f| f.fract() == 0.0 && f.abs() <= EXACT)?;
    format!("{float:.0}").parse::<i64>().ok().map(Value::from)
}

fn structure(text: &str) -> Option<Value> {
    json_or_mended(text, &mut Repairs::default())
}
