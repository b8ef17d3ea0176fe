//! JSON Schemas as the API takes them.

use serde_json::Value;

/// The schema with every object closed, since the API enforces no other. What says already whether it is open stays.
pub(super) fn closed(schema: &Value) -> Value {
    let mut schema = schema.clone();
    close(&mut schema);
    schema
}

fn close(schema: &mut Value) {
    let Value::Object(fields) = schema else { return };
    if fields.get("type").is_some_and(|kind| kind == "object") {
        fields.entry("additionalProperties").or_insert(Value::Bool(false));
    }
    for (name, value) in fields {
        match (name.as_str(), value) {
            ("properties" | "$defs" | "definitions", Value::Object(schemas)) => {
                schemas.values_mut().for_each(close);
            }
            ("anyOf" | "allOf" | "oneOf", Value::Array(schemas)) => schemas.iter_mut().for_each(close),
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
