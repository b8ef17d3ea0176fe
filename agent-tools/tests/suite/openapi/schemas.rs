//! Schemas of any shape.

use agent_core::Tool;
use agent_tools::{ArgumentSchema, openapi::OpenApi};
use proptest::prelude::*;
use serde_json::{Value, json};

fn parameters(schemas: &Value, body: &Value) -> Value {
    let document = json!({
        "openapi": "3.1.0",
        "servers": [{"url": "https://a.example"}],
        "paths": {"/x": {"post": {"operationId": "x", "requestBody": {"content": {"application/json": {"schema": body}}}}}},
        "components": {"schemas": schemas},
    });
    let api = OpenApi::builder(document.to_string()).operation("x").build().expect("builds");
    api.tools().into_iter().next().expect("a tool").spec().parameters
}

fn named(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

#[test]
fn references_are_written_out_and_circles_end() {
    let schemas = json!({
        "Tree": {"type": "object", "properties": {"left": named("Tree"), "leaf": named("Leaf")}, "required": ["leaf"]},
        "Leaf": {"type": "string", "enum": ["a", null], "nullable": true, "xml": {"name": "leaf"}},
        "Ring": named("Ring"),
        "a/b~c d": {"type": "integer"},
    });
    let tree = parameters(&schemas, &named("Tree"));
    let leaf = json!({"type": ["string", "null"], "enum": ["a", null]});
    assert_eq!(tree["properties"], json!({"left": {"description": "As Tree."}, "leaf": leaf}));
    assert_eq!(parameters(&schemas, &named("Ring"))["properties"]["body"], json!({"description": "As Ring."}));
    let odd = json!({"type": "array", "items": named("a~1b~0c%20d")});
    assert_eq!(parameters(&schemas, &odd)["properties"]["body"]["items"], json!({"type": "integer"}));
}

#[test]
fn a_small_document_does_not_make_a_large_tool() {
    // Each refers to the next one twice: inlined, the last one would occur a million times.
    let mut schemas = json!({"S0": {"type": "string"}});
    for n in 1..20 {
        let before = named(&format!("S{}", n - 1));
        schemas[format!("S{n}")] = json!({"type": "object", "properties": {"a": before, "b": before}});
    }
    assert!(parameters(&schemas, &named("S19")).to_string().len() < 200_000);
    let long = json!({"type": "string", "enum": ["x".repeat(50_000)]});
    let all: serde_json::Map<_, _> = (0..300).map(|n| (format!("p{n}"), named("Long"))).collect();
    let written = parameters(&json!({"Long": long}), &json!({"type": "object", "properties": all}));
    assert_eq!(written["properties"]["p0"], long, "what there is room for is kept");
    assert!(written.to_string().len() < 300_000);
    let deep = (0..50).fold(json!({"type": "string"}), |inner, _| json!({"type": "array", "items": inner}));
    assert!(parameters(&json!({}), &deep).to_string().len() < 10_000);
}

#[test]
fn a_body_that_is_no_plain_object_is_one_argument() {
    let bodies = [
        json!({"oneOf": [{"type": "string"}, {"type": "integer"}]}),
        json!({"type": "object", "additionalProperties": {"type": "string"}}),
        json!({"type": "array", "items": {}}),
        json!({"allOf": [{"type": "object", "properties": {"a": true}}]}),
        json!(true),
        json!({}),
    ];
    for body in bodies {
        let parameters = parameters(&json!({}), &body);
        let names: Vec<_> = parameters["properties"].as_object().expect("properties").keys().collect();
        assert_eq!(names, ["body"], "{body}");
    }
}

/// Generates schemas, including invalid ones.
fn schema() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![prop::sample::select(vec![
        json!({"type": "string"}),
        json!({"type": "file"}),
        json!({"type": ["string", "null", "x"]}),
        json!({"type": 3}),
        json!({}),
        json!(true),
        json!(null),
        json!("x"),
        json!({"$ref": "#/components/schemas/S"}),
        json!({"minimum": "1"}),
        json!({"minimum": 1, "exclusiveMinimum": true}),
        json!({"exclusiveMaximum": 3}),
        json!({"nullable": true}),
        json!({"type": "string", "pattern": "(?<x", "multipleOf": 2}),
        json!({"enum": []}),
        json!({"const": 1}),
        json!({"anyOf": []}),
        json!({"required": []}),
        json!({"contains": {}, "dependentRequired": {}}),
    ]),];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(|all| json!({"allOf": all})),
            prop::collection::vec(inner.clone(), 0..3)
                .prop_map(|all| json!({"oneOf": all, "discriminator": {"propertyName": "x"}})),
            inner.clone().prop_map(|items| json!({"type": "array", "items": items})),
            (prop::collection::btree_map("[a-c$ \\[]{0,3}", inner.clone(), 0..4))
                .prop_map(|all| json!({"type": "object", "properties": all, "required": ["a"]})),
            inner.prop_map(
                |rest| json!({"type": "object", "additionalProperties": rest, "patternProperties": {"x": {}}})
            ),
        ]
    })
}

proptest! {
    #[test]
    fn whatever_schema_a_document_has_its_tool_is_one_that_calls_can_be_checked_with(body in schema(), shared in schema()) {
        let document = json!({
            "openapi": "3.0.0",
            "servers": [{"url": "https://a.example"}],
            "paths": {"/x": {"post": {"operationId": "x", "requestBody": {"content": {"application/json": {"schema": body}}}}}},
            "components": {"schemas": {"S": shared}},
        });
        if let Ok(api) = OpenApi::builder(document.to_string()).build() {
            for tool in api.tools() {
                prop_assert!(ArgumentSchema::compile(&tool.spec()).is_ok());
                for name in tool.spec().parameters["properties"].as_object().expect("properties").keys() {
                    prop_assert!(!name.is_empty() && name.len() <= 64 && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.-".contains(&b)), "{name}");
                }
            }
        }
    }
}
