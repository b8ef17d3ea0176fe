//! JSON Schemas with closed objects.

use serde_json::Value;

/// Constraints that the API rejects. The caller validates the answer against them.
const BOUNDS: [&str; 10] = [
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "$schema",
];

/// Text formats that the API supports.
const FORMATS: [&str; 9] = ["date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "uuid"];

/// Returns the schema with every object closed, since the API enforces no other, and without
/// unsupported constraints. An explicit `additionalProperties` is kept.
pub(crate) fn closed(schema: &Value) -> Value {
    let mut schema = schema.clone();
    close(&mut schema);
    schema
}

fn close(schema: &mut Value) {
    let Value::Object(fields) = schema else { return };
    if fields.get("type").is_some_and(|kind| kind == "object") {
        fields.entry("additionalProperties").or_insert(Value::Bool(false));
    }
    fields.retain(|name, value| match name.as_str() {
        "format" => value.as_str().is_some_and(|format| FORMATS.contains(&format)),
        name => !BOUNDS.contains(&name),
    });
    if let Some(choices) = fields.remove("oneOf") {
        fields.insert("anyOf".to_owned(), choices); // the API supports only this keyword for it
    }
    for (name, value) in fields {
        match (name.as_str(), value) {
            ("properties" | "$defs" | "definitions", Value::Object(schemas)) => {
                schemas.values_mut().for_each(close);
            }
            ("anyOf" | "allOf", Value::Array(schemas)) => schemas.iter_mut().for_each(close),
            ("items", schema) => close(schema),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_the_api_refuses_is_left_out_and_properties_keep_their_names() {
        let bounded = json!({
            "type": "object",
            "properties": {
                "minimum": {"type": "integer", "format": "uint8", "minimum": 0, "maximum": 255},
                "at": {"type": "string", "format": "date-time", "minLength": 1},
                "one": {"oneOf": [{"const": 1}, {"type": "number", "multipleOf": 2}]},
            },
        });
        let wanted = json!({
            "type": "object",
            "additionalProperties": false,
            "properties": {
                "minimum": {"type": "integer"},
                "at": {"type": "string", "format": "date-time"},
                "one": {"anyOf": [{"const": 1}, {"type": "number"}]},
            },
        });
        assert_eq!(closed(&bounded), wanted);
    }

    #[test]
    fn every_object_is_closed_unless_it_says_otherwise() {
        let open = json!({
            "type": "object",
            "properties": {
                "type": {"type": "string"},
                "list": {"type": "array", "items": {"type": "object", "properties": {}}},
                "free": {"type": "object", "additionalProperties": true},
            },
            "$defs": {"a": {"anyOf": [{"type": "object"}, {"type": "null"}]}},
            "default": {"type": "object"},
        });
        let mut wanted = open.clone();
        wanted["additionalProperties"] = false.into();
        wanted["properties"]["list"]["items"]["additionalProperties"] = false.into();
        wanted["$defs"]["a"]["anyOf"][0]["additionalProperties"] = false.into();
        assert_eq!(closed(&open), wanted);
    }
}
