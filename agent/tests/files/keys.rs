//! Every key acts.

use std::collections::BTreeSet;

use agent::{
    ExitReason, RunEnd, RunRequest,
    config::Format,
    testing::{ScriptedModel, Turn},
};
use serde_json::json;

use super::{loader, loader_of};

/// What must be written for a key to be seen, and what is seen of it then, of the agent's description and its runs. `-` stands for what
/// another test sees.
const SEEN: &[(&str, &str, &str)] = &[
    ("name", "name: clerk", "clerk"),
    ("model", "-", ""),
    ("extends", "-", ""),
    ("description", "description: Helps.", "Helps."),
    ("variables", "-", ""),
    ("models", "models: {fast: {name: small}}\nmodel: fast", ""),
    ("budget", "-", ""),
    ("globals", "-", ""),
    ("store", "store: memory", "memory"),
    ("system", "system: Be kind.", "Be kind."),
    (
        "system_prompt",
        "system_prompt: Be {{ tone }}.\ninputs: {tone: {schema: {type: string}, default: kind}}",
        "Be kind.",
    ),
    ("user_prompt", "user_prompt: Say {{ word }}.\ninputs: {word: {schema: {type: string}, default: yes}}", "Say yes."),
    ("required_variables", "-", ""),
    ("inputs", "-", ""),
    ("state", "state: {notes: {schema: {type: array}, default: [here]}}", "here"),
    ("tools", "tools: [add]", "add"),
    ("toolsets", "-", ""),
    ("server_tools", "-", ""),
    ("middleware", "middleware: [logging]", "logging"),
    ("sub_agents", "-", ""),
    ("exit_on", "-", ""),
    ("max_steps", "-", ""),
    ("final_answer", "-", ""),
    ("tool_concurrency", "-", ""),
    ("max_tool_output", "-", ""),
    ("raise_tool_errors", "-", ""),
    ("streaming", "-", ""),
    ("params", "params: {temperature: 0.25}", "0.25"),
    ("deadlines", "-", ""),
    ("when_busy", "-", ""),
    ("when_waiting", "-", ""),
];

#[test]
fn the_table_of_keys_is_that_of_the_schema() {
    let loader = loader();
    let keys: BTreeSet<_> =
        loader.schema()["properties"].as_object().expect("keys").keys().map(String::as_str).collect();
    let tabled: BTreeSet<_> = SEEN.iter().map(|(key, ..)| *key).collect();
    assert_eq!(keys, tabled);
}

#[tokio::test]
async fn every_key_acts() {
    for (key, text, seen) in SEEN.iter().filter(|(_, text, _)| *text != "-") {
        let model = ScriptedModel::new(vec![Turn::text("done"); 3]);
        let mut text = format!("{text}\n");
        for (other, default) in [("name", "name: a\n"), ("model", "model: small\n")] {
            if !text.lines().any(|line| line.starts_with(&format!("{other}:"))) {
                text += default;
            }
        }
        let loaded = loader_of(&model).read(text.clone(), Format::Yaml).unwrap_or_else(|e| panic!("{e}"));
        let about = format!("{} {:?} {:?}", loaded.description(), loaded.store(), loaded.definition());
        let agent = loaded.into_agent().await.expect("builds");
        let explained = format!("{about} {}", agent.explain());
        let end = agent.start(RunRequest::user("Hi")).await.expect("runs");
        let RunEnd::Finished(end) = end else { panic!("{key}: it finishes") };
        let said = format!("{explained} {:?} {:?}", model.requests(), end.state);
        assert!(said.contains(seen), "{key}: '{seen}' is not in {said}");
    }
}

#[tokio::test]
async fn a_budget_ends_a_run() {
    let calls = vec![Turn::calls([("1", "add", json!({"a": 1, "b": 2}))]); 9];
    for text in ["budget: {model_calls: 2}", "budget: {tokens: 30}"] {
        let text = format!("name: a\nmodel: small\ntools: [add]\n{text}\n");
        let loaded = loader_of(&ScriptedModel::new(calls.clone())).read(text, Format::Yaml).expect("reads");
        let end = loaded.into_agent().await.expect("builds").run("Hi").await.expect("ends");
        let RunEnd::Finished(end) = end else { panic!("it finishes") };
        assert_eq!(end.reason, ExitReason::Budget);
    }
}

#[tokio::test]
async fn what_a_file_says_of_a_tool_is_what_the_model_is_told() {
    let model = ScriptedModel::new([Turn::calls([("1", "plus", json!({"b": 2}))]), Turn::text("done")]);
    let text = "name: a\nmodel: small\ntools:\n  - add: {name: plus, description: Adds forty., fixed: {a: 40}, timeout: 5, effect: pure}\n";
    let agent = loader_of(&model).read(text, Format::Yaml).expect("reads").into_agent().await.expect("builds");
    let spec = &agent.tools()[0];
    assert_eq!((spec.name.as_str(), spec.description.as_str()), ("plus", "Adds forty."));
    assert!(spec.parameters.pointer("/properties/a").is_none(), "the model does not see a fixed argument");
    agent.run("Hi").await.expect("runs");
    let told = format!("{:?}", model.requests()[1]);
    assert!(told.contains("42"), "{told}");
}

#[tokio::test]
async fn values_of_the_shared_storage_are_there_at_the_start() {
    let look = agent::tools::from_schema(
        "look",
        "Looks.",
        json!({"type": "object"}),
        async |_: serde_json::Value, req: agent::ToolRequest| format!("{:?}", req.cx.globals().get_value("city")),
    );
    let model = ScriptedModel::new([Turn::calls([("1", "look", json!({}))]), Turn::text("done")]);
    let registry = agent::config::Registry::new().model("small", model.clone()).tool(look);
    let text = "name: a\nmodel: small\ntools: [look]\nglobals: {city: Bern}\n";
    let agent = agent::config::Loader::new().registry(registry).read(text, Format::Yaml).expect("reads");
    agent.into_agent().await.expect("builds").run("Hi").await.expect("runs");
    assert!(format!("{:?}", model.requests()[1]).contains("Bern"));
}

#[test]
fn the_schema_is_one_that_validators_take_and_accepts_the_same_files() {
    let loader = loader();
    let schema = jsonschema::validator_for(loader.schema()).expect("a schema");
    for (_, text, _) in SEEN.iter().filter(|(_, text, _)| *text != "-") {
        let name = if text.starts_with("name") { "" } else { "name: a\n" };
        let model = if text.contains("model:") { "" } else { "model: small\n" };
        let file: serde_json::Value = serde_saphyr::from_str(&format!("{name}{model}{text}\n")).expect("YAML");
        assert!(
            schema.is_valid(&file),
            "{text}: {:?}",
            schema.iter_errors(&file).map(|e| e.to_string()).collect::<Vec<_>>()
        );
    }
    for wrong in [
        json!({"name": "a"}),
        json!({"name": "a", "model": "small", "modle": 1}),
        json!({"name": "a", "model": "small", "tools": ["ad"]}),
    ] {
        assert!(!schema.is_valid(&wrong), "{wrong}");
    }
}
