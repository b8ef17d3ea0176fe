//! Generated tools.

use agent::{core::ToolSpec, testing::SeededRng};
use serde_json::{Value, json};

/// Returns up to five tools.
pub(super) fn generate(rng: &mut SeededRng) -> Vec<ToolSpec> {
    (0..rng.below(6)).map(|n| ToolSpec::new(format!("tool_{n}"), description(rng), root(rng))).collect()
}

fn description(rng: &mut SeededRng) -> String {
    if rng.chance(15) { "A long description. ".repeat(90) } else { "A tool.".to_owned() }
}

/// Returns a schema of parameters.
fn root(rng: &mut SeededRng) -> Value {
    let object = |rng: &mut SeededRng| json!({"type": "object", "properties": properties(rng)});
    match rng.below(12) {
        0 => json!({"type": "object"}),
        1 => json!({}),
        2 => json!({"type": "object", "properties": {}, "required": null}),
        3 => json!({"anyOf": [object(rng), object(rng)]}),
        4 => json!({"type": "object", "oneOf": [object(rng), {"required": ["a"]}]}),
        5 => json!({"allOf": [object(rng), {"$ref": "#/definitions/T"}], "definitions": {"T": object(rng)}}),
        6 => json!({"$ref": "#/$defs/T", "$defs": {"T": object(rng)}}),
        7 => json!({"$schema": "http://json-schema.org/draft-04/schema#", "type": "object",
            "properties": {"n": {"type": "number", "minimum": 0, "exclusiveMinimum": true}}}),
        8 => json!({"type": "object", "properties": {"tree": {"$ref": "#/properties/tree"}, "self": {"$ref": "#"}}}),
        _ => {
            let mut schema = object(rng);
            let names = schema["properties"].as_object().into_iter().flat_map(|all| all.keys().cloned());
            schema["required"] = names.collect();
            schema
        }
    }
}

fn properties(rng: &mut SeededRng) -> Value {
    let names = ["a", "$top", "a b", "größe", "x[0]", "@id", "", LONG];
    let all = (0..=rng.below(4)).map(|n| {
        let at = usize::try_from(rng.below(names.len() as u64)).unwrap_or(0);
        (format!("{}{n}", names[at]), property(rng, 2))
    });
    Value::Object(all.collect())
}

fn property(rng: &mut SeededRng, room: u32) -> Value {
    match rng.below(if room == 0 { 6 } else { 12 }) {
        0 => json!({"type": "string", "enum": []}),
        1 => json!({"type": ["string", "null"], "format": "uuid"}),
        2 => json!({"type": "array"}),
        3 => json!({"type": "integer", "maximum": 5, "exclusiveMaximum": false}),
        4 => json!({"const": "only"}),
        5 => json!({"type": "string", "enum": ["", "x", null, 3]}),
        6 => json!({"type": "array", "items": [{"type": "number"}, {"type": "number"}], "additionalItems": false}),
        7 => json!({"type": "object", "properties": {"b c": property(rng, room - 1)}, "required": ["b c"]}),
        8 => json!({"anyOf": [property(rng, room - 1), {"type": "null"}]}),
        9 => json!({"$ref": "#/definitions/missing"}),
        10 => json!({"type": "object", "properties": null, "required": "b"}),
        _ => json!({"type": "array", "items": property(rng, room - 1)}),
    }
}

/// A key that is longer than 64 characters.
const LONG: &str = "a_key_that_is_longer_than_sixty_four_characters_which_some_providers_refuse_";
