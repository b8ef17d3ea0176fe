//! The generated conversations, in small numbers, and the validator itself.

use serde_json::json;

use super::*;

#[test]
fn the_requests_of_hostile_conversations_break_no_rule_of_any_family() {
    let counted = families().expect("valid profiles").into_iter().map(|family| {
        let mut counts = Counts::default();
        (1..=150).for_each(|seed| check(&family, seed, false, &mut counts));
        (family.name, counts)
    });
    let wrong: Vec<_> = counted.filter(|(_, counts)| !counts.broken.is_empty() || counts.encoded < 100).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn the_validator_finds_what_it_is_for() {
    let all = families().expect("valid profiles");
    let found = |name: &str, body: serde_json::Value| {
        let family = all.iter().find(|family| family.name == name).expect("a family");
        let mut found = rules::common(family, &body);
        found.extend((family.rules)(&body));
        found.len()
    };
    let call = |id: &str, name: &str, arguments: &str| json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}});
    let chat = |call: serde_json::Value, answered: &str| {
        json!({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": null, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": answered, "content": "r"}]})
    };
    assert_eq!(found("openai-chat", chat(call("c1", "look", "{}"), "c1")), 0);
    assert_eq!(found("openai-chat", chat(call("c1", "look.at", "{}"), "c1")), 1);
    assert_eq!(found("openai-chat", chat(call("c1", "look", "[]"), "c1")), 1);
    assert_eq!(found("openai-chat", chat(call("c1", "look", "{}"), "c2")), 1);
    assert_eq!(found("openai-chat", chat(call(&"c".repeat(41), "look", "{}"), &"c".repeat(41))), 1);
    let tool = |schema| json!({"messages": [], "tools": [{"type": "function", "function": {"name": "t", "description": "d", "parameters": schema}}]});
    let properties = json!({"a": {"type": "array", "items": {}}});
    assert_eq!(found("openai-chat", tool(json!({"type": "object", "properties": properties}))), 0);
    for schema in [
        json!({"type": "object"}),
        json!({"type": "object", "properties": {"a": {"type": "array"}}}),
        json!({"type": "object", "properties": {}, "anyOf": []}),
        json!({"type": "object", "properties": {"a": {"$ref": "#/definitions/a"}}}),
        json!({"type": "object", "properties": {"a": {"minimum": 1, "exclusiveMinimum": true}}}),
    ] {
        assert_eq!(found("openai-chat", tool(schema.clone())), 1, "{schema}");
    }
}
