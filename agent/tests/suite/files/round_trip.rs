//! From a definition to a file and back.

use agent::{
    AgentDefinition,
    config::{self, Format},
};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::loader;

/// Any text that a person might write, and some that YAML has a meaning for.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[ -~]{1,30}",
        1 => "\\PC{1,20}",
        1 => "[a-z]{1,5}\n[a-z ]{0,9}\n?",
        1 => prop::sample::select(vec!["no", "null", "~", "1", "1.0", "- a", "a: b", "#", "'", "|", "{}", "[", "true", "0x1", " x "])
            .prop_map(str::to_owned),
    ]
    .prop_filter("a reference is followed", |text| !text.contains("${"))
}

fn entry(key: &'static str, value: impl Strategy<Value = Value> + 'static) -> BoxedStrategy<Option<(String, Value)>> {
    prop::option::of(value.prop_map(move |value| (key.to_owned(), value))).boxed()
}

fn definition() -> impl Strategy<Value = AgentDefinition> {
    let keys = vec![
        entry("system", text().prop_map(Value::from)),
        entry(
            "system_prompt",
            text().prop_filter("is no template", |text| !text.contains(['{', '%', '#'])).prop_map(Value::from),
        ),
        entry("tools", Just(json!(["add"]))),
        entry("tools", Just(json!([{"add": {"name": "plus", "fixed": {"a": 1}}}]))),
        entry(
            "middleware",
            (1..50_u64, any::<bool>()).prop_map(|(calls, all)| {
                if all {
                    json!([{"limits": {"model_calls": calls}, "for_all": true}, "logging"])
                } else {
                    json!([{"limits": {"model_calls": calls}}])
                }
            }),
        ),
        entry("max_steps", (1..1000_u32).prop_map(Value::from)),
        entry("final_answer", any::<bool>().prop_map(Value::from)),
        entry("tool_concurrency", (1..64_usize).prop_map(Value::from)),
        entry("max_tool_output", (1..1_000_000_usize).prop_map(Value::from)),
        entry("raise_tool_errors", any::<bool>().prop_map(Value::from)),
        entry("streaming", any::<bool>().prop_map(Value::from)),
        entry(
            "params",
            (0.0..2.0_f64, 1..9999_u64).prop_map(|(t, most)| json!({"temperature": t, "max_tokens": most})),
        ),
        entry("when_busy", Just(json!("steer"))),
        entry(
            "state",
            text().prop_map(
                |default| json!({"notes": {"schema": {"type": "string"}, "merge": "replace", "default": default}}),
            ),
        ),
        entry(
            "sub_agents",
            text()
                .prop_map(|about| json!({"helper": {"description": about, "agent": {"name": "h", "model": "small"}}})),
        ),
    ];
    (text().prop_filter("an agent has a name", |name| !name.trim().is_empty()), keys).prop_map(|(name, keys)| {
        let mut map = Map::from_iter(keys.into_iter().flatten());
        if map.contains_key("system") {
            map.remove("system_prompt");
        }
        map.insert("name".to_owned(), Value::from(name));
        map.insert("model".to_owned(), Value::from("small"));
        serde_json::from_value(Value::Object(map)).expect("a definition")
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn a_definition_that_is_written_to_a_file_is_read_as_the_same(definition in definition()) {
        let text = config::to_yaml(&definition).expect("writes");
        let loaded = loader().read(text.clone(), Format::Yaml).unwrap_or_else(|e| panic!("{e}\n{text}"));
        prop_assert_eq!(loaded.definition(), &definition, "{}", text);
        let json: Value = serde_saphyr::from_str(&text).expect("YAML");
        let json = json.to_string();
        let loaded = loader().read(json.clone(), Format::Yaml).unwrap_or_else(|e| panic!("{e}\n{json}"));
        prop_assert_eq!(loaded.definition(), &definition, "{}", json);
        let agent = loaded.into_builder().build().expect("builds");
        prop_assert_eq!(agent.definition().expect("is data").name, definition.name);
    }
}
