//! Limits of providers on the schemas that they enforce.

use serde_json::Value;

/// Limits of one provider.
struct Limits {
    providers: &'static [&'static str],
    /// Maximum number of properties of all objects together.
    properties: usize,
    /// Maximum nesting of objects and lists.
    depth: usize,
    /// Maximum number of values of all enumerations together.
    values: usize,
    /// Maximum number of properties that are not required.
    optional: usize,
    /// Maximum number of properties with several types.
    unions: usize,
}

const ANY: usize = usize::MAX;

const LIMITS: [Limits; 2] = [
    // Guide to structured outputs, "supported schemas" (platform.openai.com, 2025-10).
    Limits { providers: &["openai", "azure"], properties: 5000, depth: 10, values: 1000, optional: ANY, unions: ANY },
    // Guide to structured outputs, "schema complexity limits" (docs.claude.com, 2026-02).
    Limits { providers: &["anthropic"], properties: ANY, depth: ANY, values: ANY, optional: 24, unions: 16 },
];

/// Returns true if the provider compiles a grammar for the schema, as far as its limits are known.
pub(super) fn fits(schema: &Value, provider: &str) -> bool {
    let Some(most) = LIMITS.iter().find(|limits| limits.providers.contains(&provider)) else { return true };
    let mut counts = Counts::default();
    counts.add(schema, 0);
    counts.properties <= most.properties
        && counts.depth <= most.depth
        && counts.values <= most.values
        && counts.optional <= most.optional
        && counts.unions <= most.unions
}

/// Counts over a schema and its definitions.
#[derive(Debug, Default, PartialEq)]
struct Counts {
    properties: usize,
    depth: usize,
    values: usize,
    optional: usize,
    unions: usize,
}

impl Counts {
    fn add(&mut self, schema: &Value, depth: usize) {
        let Value::Object(fields) = schema else { return };
        let is_nested = fields.contains_key("properties") || fields.contains_key("items");
        let depth = depth + usize::from(is_nested);
        self.depth = self.depth.max(depth);
        self.values += fields.get("enum").and_then(Value::as_array).map_or(0, Vec::len);
        let has_types = fields.get("type").and_then(Value::as_array).is_some_and(|types| types.len() > 1);
        self.unions += usize::from(has_types || ["anyOf", "oneOf"].iter().any(|choice| fields.contains_key(*choice)));
        if let Some(Value::Object(properties)) = fields.get("properties") {
            let required = fields.get("required").and_then(Value::as_array).map_or(0, Vec::len);
            self.properties += properties.len();
            self.optional += properties.len().saturating_sub(required);
        }
        for (keyword, value) in fields {
            match (keyword.as_str(), value) {
                ("properties", Value::Object(named)) => named.values().for_each(|schema| self.add(schema, depth)),
                ("$defs" | "definitions", Value::Object(named)) => {
                    named.values().for_each(|schema| self.add(schema, 0));
                }
                ("anyOf" | "oneOf", Value::Array(choices)) => choices.iter().for_each(|schema| self.add(schema, depth)),
                ("items", items) => self.add(items, depth),
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::*;

    fn object(properties: usize, required: usize) -> Value {
        let names: Vec<_> = (0..properties).map(|n| format!("p{n}")).collect();
        let fields: Map<_, _> = names.iter().map(|name| (name.clone(), json!({"type": "string"}))).collect();
        json!({"type": "object", "properties": fields, "required": names[..required]})
    }

    #[test]
    fn a_schema_is_counted_with_its_definitions() {
        let schema = json!({"type": "object", "required": ["a"], "properties": {
            "a": {"type": "array", "items": {"enum": ["x", "y"]}}, "b": {"type": ["string", "null"]}},
            "$defs": {"d": object(3, 1)}});
        let mut counts = Counts::default();
        counts.add(&schema, 0);
        assert_eq!(counts, Counts { properties: 5, depth: 2, values: 2, optional: 3, unions: 1 });
    }

    #[test]
    fn each_provider_has_its_own_limits() {
        let many_optional = object(30, 5);
        assert!(fits(&many_optional, "openai") && !fits(&many_optional, "anthropic") && fits(&many_optional, "other"));
        assert!(fits(&object(30, 10), "anthropic"));
        let values: Vec<_> = (0..1001).collect();
        assert!(!fits(&json!({"enum": values}), "openai") && fits(&json!({"enum": values}), "anthropic"));
        let deep = (0..11).fold(json!({"type": "string"}), |inner, _| json!({"type": "array", "items": inner}));
        assert!(!fits(&deep, "azure"));
    }
}
