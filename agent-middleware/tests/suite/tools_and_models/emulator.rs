//! Emulated tools.

use agent_core::{
    Effect, Tool, ToolMessage, ToolOutput, ToolRequest,
    testing::{ScriptedModel, Turn},
};
use agent_exec::{Agent, AgentBuilder};
use agent_middleware::{Approval, ToolEmulator, tools::ToolEmulatorConfig};
use agent_tools::{ToolExt, from_schema};
use serde_json::{Value, json};

use super::{finished, results, run, says, tool};

/// Returns a tool that must never run.
fn forbidden(name: &'static str) -> impl Tool {
    let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]});
    let body = move |_: Value, _: ToolRequest| async move { Err::<String, _>(panicked(name)) };
    from_schema(name, "Deletes a file.", schema, body).with_options(|options| options.effect(Effect::Idempotent))
}

fn panicked(name: &str) -> String {
    panic!("{name} was called")
}

fn calls() -> ScriptedModel {
    let path = json!({"path": "/"});
    let calls = [("c1", "delete", path.clone()), ("c2", "wipe", path), ("c3", "look", json!({}))];
    ScriptedModel::new([Turn::calls(calls), Turn::text("so")])
}

fn builder(model: &ScriptedModel) -> AgentBuilder {
    Agent::builder("a", model.clone()).tool(forbidden("delete")).tool(forbidden("wipe")).tool(tool("look", ""))
}

#[tokio::test]
async fn an_emulated_tool_is_never_called_and_the_others_run() {
    let model = calls();
    let emulator = ToolEmulator::new()
        .answer("delete", json!({"content": "deleted"}))
        .emulate("w*")
        .by(|req| ToolOutput::text(format!("{} {}", req.call.name, req.args["path"])));
    run(&builder(&model).middleware(emulator).build().expect("builds")).await;
    assert_eq!(results(&model), ["deleted", "wipe \"/\"", "look"]);
}

#[tokio::test]
async fn all_tools_can_be_emulated_but_some() {
    let model = calls();
    let emulator = ToolEmulator::new().emulate("*").except("look");
    let end = run(&builder(&model).middleware(emulator).build().expect("builds")).await;
    let none = |name: &str| format!("Tool '{name}' is emulated, and has no answer.");
    assert_eq!(results(&model), [none("delete"), none("wipe"), "look".into()]);
    let failed: Vec<_> = end.history.iter().filter_map(|m| m.as_tool().map(ToolMessage::is_error)).collect();
    assert_eq!(failed, [true, true, false]);
}

#[tokio::test]
async fn a_model_stands_in_for_a_tool_and_what_it_uses_counts() {
    let model = ScriptedModel::new([Turn::call("c1", "delete", json!({"path": "/</arguments>"})), Turn::text("so")]);
    let stand_in = says(&["The file is gone."]);
    let emulator = ToolEmulator::new().emulate("*").with_model(stand_in.clone());
    let end = run(&builder(&model).middleware(emulator).build().expect("builds")).await;
    assert_eq!((results(&model), end.usage.calls), (vec!["The file is gone.".to_owned()], 3));
    let seen = stand_in.requests().remove(0);
    assert_eq!(seen.texts(), ["<arguments>\n{\"path\":\"/&lt;/arguments>\"}\n</arguments>"]);
    let told = seen.system.expect("is told");
    assert!(told.contains("`delete`") && told.contains("Deletes a file.") && told.contains("\"required\""), "{told}");
}

#[tokio::test]
async fn arguments_are_checked_as_always() {
    let model = ScriptedModel::new([Turn::call("c1", "delete", json!({})), Turn::text("so")]);
    let emulator = ToolEmulator::new().answer("delete", "deleted");
    run(&builder(&model).middleware(emulator).build().expect("builds")).await;
    assert!(results(&model)[0].starts_with("Invalid arguments for tool 'delete'"), "{:?}", results(&model));
}

#[tokio::test]
async fn people_are_asked_in_a_dry_run_too() {
    let model = calls();
    let emulator = ToolEmulator::new().emulate("*").by(|_| ToolOutput::text("done"));
    let agent = builder(&model).middleware(Approval::new().ask("delete").allow("*")).middleware(emulator);
    let end = agent.build().expect("builds").run("Go.").await.expect("runs");
    assert_eq!(end.checkpoint().expect("waits").questions.len(), 1);
}

#[tokio::test]
async fn with_its_defaults_it_emulates_nothing() {
    let model = ScriptedModel::new([Turn::call("c3", "look", json!({})), Turn::text("so")]);
    let agent = builder(&model).middleware(ToolEmulator::from(ToolEmulatorConfig::default())).build();
    finished(agent.expect("builds").run("Go.").await);
    assert_eq!(results(&model), ["look"]);
    let config: ToolEmulatorConfig =
        serde_json::from_value(json!({"tools": ["*"], "answers": {"a": 1}})).expect("reads");
    assert_eq!(config.answers["a"], 1);
    assert!(serde_json::from_value::<ToolEmulatorConfig>(json!({"tool": []})).is_err());
}
