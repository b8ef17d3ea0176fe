//! The JSON Schemas of configurations accept exactly what serde reads.

use agent_core::{
    Caps,
    run::{WhenBusy, WhenWaiting},
};
use agent_exec::AgentDefinition;
use agent_llm::{
    Provider, Providers,
    models::{Catalogue, ModelEntry},
    router::Condition,
};
use agent_middleware::{Builtin, guardrails, memory};
use schemars::{JsonSchema, SchemaGenerator};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// The schema of a type, and the verdict of its reader.
struct Pair {
    schema: Value,
    validator: jsonschema::Validator,
    reads: Box<dyn Fn(&Value) -> bool>,
}

impl Pair {
    fn of<T: DeserializeOwned + JsonSchema>() -> Self {
        let schema = SchemaGenerator::default().into_root_schema_for::<T>();
        Self::new(schema.into(), |value| T::deserialize(value).is_ok())
    }

    fn builtin(builtin: &'static Builtin) -> Self {
        let mut generator = SchemaGenerator::default();
        let mut schema = Value::from(builtin.schema(&mut generator));
        schema["$defs"] = Value::Object(generator.take_definitions(true));
        let model = agent_core::testing::ScriptedModel::new([]);
        let model: std::sync::Arc<dyn agent_core::Model> = std::sync::Arc::new(model);
        Self::new(schema, move |value| match builtin.make(value.clone(), &model, &[]) {
            _ if value.is_null() => false, // null means that there is no configuration
            // Checks beyond the form of the configuration are not part of the schema.
            Err(e) => !e.message().starts_with("the configuration of middleware"),
            Ok(_) => true,
        })
    }

    fn new(schema: Value, reads: impl Fn(&Value) -> bool + 'static) -> Self {
        let validator = jsonschema::validator_for(&schema).unwrap_or_else(|e| panic!("{e} in {schema:#}"));
        Self { schema, validator, reads: Box::new(reads) }
    }

    /// Compares the schema with the reader, on this value and on all values that are one change
    /// away from it.
    fn agree_around(&self, value: &Value) {
        let errors: Vec<_> = self.validator.iter_errors(value).map(|e| e.to_string()).collect();
        assert!((self.reads)(value), "the sample is read: {value:#}");
        assert!(errors.is_empty(), "the schema refuses {value:#}: {errors:?}");
        let mut disagreed = Vec::new();
        for other in changes(value) {
            let (read, valid) = ((self.reads)(&other), self.validator.is_valid(&other));
            if read != valid {
                disagreed.push(format!("read: {read}, valid: {valid}: {other}"));
            }
        }
        assert!(disagreed.is_empty(), "{}\nof {}\n{:#}", disagreed.join("\n"), disagreed.len(), self.schema);
    }
}

/// Returns all values that are one change away. Lists only replace lists: serde reads a list as the
/// fields of a struct.
fn changes(value: &Value) -> Vec<Value> {
    let others =
        [json!(null), json!(true), json!("text"), json!(-1), json!(0.5), json!(3), json!({}), json!({"new": 1})];
    let mut all: Vec<Value> = others.into_iter().filter(|other| other != value).collect();
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                let with = |field| Value::from_iter(fields.clone().into_iter().chain([(name.clone(), field)]));
                all.extend(changes(field).into_iter().map(with));
                all.push(Value::from_iter(fields.clone().into_iter().filter(|(other, _)| other != name)));
            }
            all.push(Value::from_iter(fields.clone().into_iter().chain([("new".into(), json!("text"))])));
        }
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                all.extend(changes(item).into_iter().map(|changed| {
                    let mut items = items.clone();
                    items[at] = changed;
                    Value::Array(items)
                }));
            }
        }
        _ => {}
    }
    all
}

/// Returns configurations of a middleware that differ from its defaults.
fn samples(name: &str) -> Vec<Value> {
    match name {
        "approval" => vec![json!({
            "permissions": {"default": "deny", "root": "/srv", "rules": [
                {"policy": "allow", "tool": "read_*", "arguments": {"type": "object"}, "when": {"path": {"path": ["src/**"]}}},
                {"policy": "ask", "tool": "*", "when": {"query": {"text": ["a*"]}}},
            ]},
            "descriptions": {"send": "Sends mail."}, "redact": {"*": ["password"]}, "decisions": ["approve", "edit"],
            "expires": 86400, "actor": "root", "timeout": 1.5,
        })],
        "breakpoints" => vec![json!({"at": [{"model": {"visit": 1}}, {"tools": {"visit": 2, "tool": "send"}}]})],
        "context_compaction" => {
            let strategies = [
                json!("cache_aware"),
                json!({"sliding_window": {"window_size": 20}}),
                json!({"clear_tool_results": {"keep": {"tokens": 500}, "only": ["read"], "at_least": 100}}),
                json!({"offload_tool_results": {"keep": {"user_rounds": 1}, "over": 10, "preview": 5}}),
                json!({"clamp_messages": {"head": 10, "tail": 5}}),
                json!({"dedup_reads": {"tools": ["read"]}}),
                json!({"tiers": [{"summary": {"keep": {"messages": 3}, "prompt": "Sum up."}}, "cache_aware"]}),
            ];
            let triggers = [
                json!("never"),
                json!({"any": [{"fraction": 0.5}, {"all": [{"gap": 300.0}, {"messages": 10}]}]}),
                json!({"tokens": 1000}),
            ];
            let mut all: Vec<_> = strategies.map(|strategy| json!({"strategy": strategy})).into();
            all.extend(triggers.map(|trigger| json!({"trigger": trigger, "max_tokens": 1000})));
            all
        }
        "pii" => vec![json!({"rules": [
            {"find": "email"},
            {"find": {"pattern": {"name": "ticket", "regex": "T-[0-9]+", "scope": "word"}}, "strategy": "mask"},
        ]})],
        "prompt_injection" => vec![json!({
            "tools": {"web": ["untrusted"], "mail": ["untrusted", "secret"]}, "sinks": [{"tool": "send", "when": "secret", "policy": "ask"}],
            "extract": {"web": {"type": "string"}}, "links": "keep",
        })],
        "reminders" => vec![json!({"steps": 3, "every": [{"steps": 5, "text": "Look up."}]})],
        "limits" => vec![json!({"model_calls": 5, "tools": {"search": 2}, "on_tool_calls": "end", "wall_time": 0.5})],
        "runtime_environment" => vec![json!({"directory": "/srv", "facts": {"team": "ours"}})],
        "tool_emulator" => vec![json!({"answers": {"send": {"sent": true}}})],
        "tool_search" => vec![json!({"hints": {"send": "mail"}})],
        _ => Vec::new(),
    }
}

#[test]
fn a_middleware_is_configured_as_its_schema_says() {
    for builtin in Builtin::all() {
        let pair = Pair::builtin(builtin);
        let root = &pair.schema["$ref"];
        let name = root.as_str().and_then(|path| path.rsplit('/').next()).expect("a definition");
        let fields = pair.schema["$defs"][name]["properties"].as_object().expect("fields").clone();
        let undescribed: Vec<_> = fields.iter().filter(|(_, field)| field.get("description").is_none()).collect();
        assert!(undescribed.is_empty(), "{}: {undescribed:?}", builtin.name());
        let defaults = fields.into_iter().filter_map(|(name, field)| Some((name, field.get("default")?.clone())));
        pair.agree_around(&Value::from_iter(defaults));
        samples(builtin.name()).iter().for_each(|sample| pair.agree_around(sample));
    }
}

#[test]
fn a_middleware_with_parts_of_its_own_is_configured_as_its_schema_says() {
    let guards = json!({"guards": {"rude": {"stages": ["input", "tool_output"], "parallel": true, "on_error": "open", "timeout": 2}}});
    Pair::of::<guardrails::GuardrailsConfig>().agree_around(&guards);
    let moderation = json!({"thresholds": {"violence": 0.5}, "threshold": 0.7, "answer": "No."});
    Pair::of::<guardrails::ModerationConfig>().agree_around(&moderation);
    Pair::of::<memory::KnowledgeConfig>().agree_around(&json!({"top_k": 3, "max_chars": 100}));
    Pair::of::<memory::ChatHistoryConfig>().agree_around(&json!({"chat": "a", "last_k": 5}));
    let memory = json!({"user": "ada", "scope": "session", "top_k": 3, "keep": "nothing", "tool": true});
    Pair::of::<memory::LongTermMemoryConfig>().agree_around(&memory);
}

#[test]
fn an_agent_is_defined_as_its_schema_says() {
    let pair = Pair::of::<AgentDefinition>();
    pair.agree_around(&json!({"name": "a", "model": "small"}));
    pair.agree_around(&json!({
        "name": "a", "model": "small", "system": "Be kind.", "system_prompt": "Hello {{ name }}", "user_prompt": "{{ q }}",
        "required_variables": {"only": ["q"]}, "inputs": {"q": {"schema": {"type": "string"}, "default": "?"}},
        "state": {"notes": {"schema": {"type": "array"}, "merge": "append"}}, "tools": ["search"], "toolsets": ["wiki"],
        "middleware": ["logging", {"limits": {"model_calls": 5}, "for_all": true}],
        "sub_agents": {"b": {"description": "Helps.", "agent": {"name": "b", "model": "small"}}},
        "exit_on": ["done"], "max_steps": 5, "final_answer": true, "streaming": true, "when_busy": {"queue": {"limit": 3}},
    }));
    pair.agree_around(&json!({"name": "a", "model": "small", "server_tools": [
        {"web_search": {"allowed_domains": ["docs.rs"], "max_uses": 3, "location": {"city": "Berlin", "country": "DE"}}},
        {"web_fetch": {"blocked_domains": ["a.example"]}}, "code_execution", {"file_search": {"stores": ["s"], "max_results": 2}},
        {"computer": {"width": 10, "height": 10}}, {"mcp": {"name": "wiki", "url": "https://a.example", "allowed_tools": ["look"]}},
    ]}));
    pair.agree_around(&json!({"name": "a", "model": "small", "params": {
        "temperature": 0.5, "top_p": 1.0, "max_tokens": 5, "stop": ["END"], "seed": -1, "tool_choice": {"tool": "search"},
        "parallel_tool_calls": false, "effort": "xhigh", "thinking_tokens": 5, "modalities": ["text", "audio"],
        "voice": {"name": "alloy", "format": "wav"}, "output": {"name": "o", "schema": {}, "strict": true}, "extra": {"user": "u"},
    }}));
    pair.agree_around(&json!({"name": "a", "model": "small", "deadlines": {
        "run": 600, "step": 60.5, "first_chunk": 30, "chunk_gap": 10, "tool": 20, "tools": {"build": 300},
    }}));
}

#[test]
fn what_runs_may_use_and_do_is_said_as_its_schema_says() {
    let caps =
        json!({"tokens": 5, "cost": 1, "model_calls": 1, "tool_calls": 1, "wall_time": 600, "depth": 2, "fan_out": 3});
    Pair::of::<Caps>().agree_around(&caps);
    Pair::of::<WhenBusy>().agree_around(&json!("steer"));
    Pair::of::<WhenWaiting>().agree_around(&json!("supersede"));
    let condition = json!({"any": [{"tokens_over": 5}, {"not": "media"}, {"all": [{"state": {"key": "k", "is": 1}}]}]});
    Pair::of::<Condition>().agree_around(&condition);
}

#[test]
fn providers_and_models_are_said_as_their_schemas_say() {
    let pair = Pair::of::<Provider>();
    for provider in Providers::builtin().iter() {
        pair.agree_around(&serde_json::to_value(provider).expect("JSON"));
    }
    let pair = Pair::of::<ModelEntry>();
    for (_, entry) in Catalogue::builtin().iter() {
        pair.agree_around(&serde_json::to_value(entry).expect("JSON"));
    }
}
