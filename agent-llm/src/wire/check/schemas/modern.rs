//! Conversion of older drafts to JSON Schema 2020-12.

use serde_json::{Map, Value};

/// Converts one schema.
pub(super) fn rewrite(fields: &mut Map<String, Value>) {
    bound(fields, "exclusiveMinimum", "minimum");
    bound(fields, "exclusiveMaximum", "maximum");
    if fields.get("items").is_some_and(Value::is_array) {
        let places = fields.remove("items").unwrap_or_default();
        fields.entry("prefixItems").or_insert(places);
        if let Some(others) = fields.remove("additionalItems") {
            fields.insert("items".into(), others);
        }
    }
    fields.remove("additionalItems");
    fields.retain(|keyword, value| match keyword.as_str() {
        "required" => value.is_array(),
        "enum" => value.as_array().is_some_and(|values| !values.is_empty()),
        "properties" | "patternProperties" | "$defs" | "definitions" => value.is_object(),
        "$schema" => value.as_str().is_some_and(|uri| uri.contains("2020-12")),
        "type" | "description" | "title" => !value.is_null(),
        _ => true,
    });
}

/// Converts a boolean exclusive bound (draft 4) to a numeric one.
fn bound(fields: &mut Map<String, Value>, exclusive: &str, inclusive: &str) {
    let Some(Value::Bool(is_exclusive)) = fields.get(exclusive) else { return };
    let is_exclusive = *is_exclusive;
    fields.remove(exclusive);
    if is_exclusive && let Some(bound) = fields.remove(inclusive) {
        fields.insert(exclusive.into(), bound);
    }
}
