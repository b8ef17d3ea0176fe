//! Agents as data, and modified agents.

use agent_core::{
    Deadlines, ErrorKind, RunRequest, StateField, StateSchema,
    storage::Merge,
    testing::{ScriptedModel, Turn},
};
use agent_exec::{Agent, AgentDefinition, PartKind, Registry, RequiredVariables, UnknownPart};
use agent_middleware::{Approval, Limits, ToolErrors, approval::ApprovalConfig, limits::LimitsConfig};
use serde_json::{Value, json};
use tower::layer::util::Identity;

use crate::common::{double, finished, gives, ms};

fn registry(model: &ScriptedModel) -> Registry {
    let add =
        Merge::custom(|old, new| Ok((old.and_then(|v| v.as_i64()).unwrap_or(0) + new.as_i64().unwrap_or(0)).into()));
    let writes = gives("g", json!({"total": 2})).with(|options| options.writes("total", Some("total")));
    Registry::new()
        .model("small", model.clone())
        .tool(double("f").with(|options| options.arg("key", "SECRET123")))
        .tool(writes)
        .middleware("quiet", ToolErrors::new(|_, _| None))
        .middleware_with("limits", |config: LimitsConfig| Ok(Limits::from(config)))
        .middleware_with("approval", |config: ApprovalConfig| Ok(Approval::from(config)))
        .handler("add", add)
}

fn whole() -> Value {
    json!({
        "name": "clerk",
        "model": "small",
        "system_prompt": "Speak {{ language }}.",
        "user_prompt": "{{ task }}",
        "required_variables": {"only": ["task"]},
        "inputs": {"language": {"schema": {"type": "string"}, "merge": "replace", "default": "English"}},
        "state": {
            "notes": {"schema": {"type": "array"}, "merge": "append"},
            "total": {"schema": {"type": "integer"}, "merge": "add", "default": 1},
        },
        "tools": ["g", "f"],
        "middleware": [
            {"limits": {"model_calls": 5}},
            {"quiet": null, "for_all": true},
            {"approval": {"if_risky": ["f"]}},
        ],
        "sub_agents": {"helper": {
            "description": "Helps.",
            "agent": {"name": "h", "model": "small", "max_steps": 2, "tool_concurrency": 16, "max_tool_output": 1_048_576},
        }},
        "exit_on": ["f"],
        "max_steps": 7,
        "final_answer": true,
        "tool_concurrency": 3,
        "max_tool_output": 1000,
        "raise_tool_errors": true,
        "streaming": true,
        "params": {"temperature": 0.5},
        "when_busy": "steer",
    })
}

fn read(data: &Value) -> AgentDefinition {
    serde_json::from_value(data.clone()).expect("parses")
}

#[tokio::test]
async fn an_agent_goes_through_data_and_back_and_does_the_same() {
    let calls = [("1", "g", json!({})), ("2", "g", json!({}))];
    let model = ScriptedModel::new([Turn::calls(calls), Turn::text("done")]);
    let agent = registry(&model).builder(&read(&whole())).and_then(agent_exec::AgentBuilder::build).expect("builds");
    let data = serde_json::to_value(agent.definition().expect("is data")).expect("serialises");
    assert_eq!(data.pointer("/deadlines"), None);
    assert_eq!(data, whole());

    let again = registry(&model).builder(&read(&data)).and_then(agent_exec::AgentBuilder::build).expect("builds");
    assert_eq!(again.explain(), agent.explain());
    let end = finished(again.start(RunRequest::new(Vec::new()).input("task", "Add.")).await);
    assert_eq!((&end.state["total"], model.requests()[0].system.as_deref()), (&json!(5), Some("Speak English.")));
}

#[test]
fn an_agent_as_data_has_no_secret_of_its_parts() {
    let agent = registry(&ScriptedModel::new([])).builder(&read(&whole())).expect("begins");
    let agent = agent.resource("SECRET123").build().expect("builds");
    let data = serde_json::to_string(&agent.definition().expect("is data")).expect("serialises");
    assert!(!data.contains("SECRET123"), "{data}");
    assert!(!format!("{:?}", registry(&ScriptedModel::new([]))).contains("SECRET123"));
}

#[test]
fn a_part_that_the_registry_does_not_have_is_named_with_those_that_it_has() {
    let registry = registry(&ScriptedModel::new([]));
    for (place, wrong, kind, known) in [
        ("/model", json!("large"), PartKind::Model, vec!["small"]),
        ("/tools", json!(["f", "h"]), PartKind::Tool, vec!["f", "g"]),
        ("/toolsets", json!(["mcp"]), PartKind::Toolset, vec![]),
        ("/middleware", json!(["cache"]), PartKind::Middleware, vec!["approval", "limits", "quiet"]),
        ("/state/total/merge", json!("sum"), PartKind::Handler, vec!["add"]),
    ] {
        let mut data = whole();
        data["toolsets"] = json!([]);
        *data.pointer_mut(place).expect("there") = wrong;
        let e = registry.builder(&read(&data)).expect_err(place);
        let unknown = UnknownPart::of(&e).expect("typed");
        assert_eq!((unknown.kind, e.kind()), (kind, ErrorKind::Config));
        assert_eq!(unknown.known, known);
        assert!(e.message().contains(&format!("no {kind} '{}'", unknown.name)), "{e}");
    }
    let mut data = whole();
    data["sub_agents"]["helper"]["agent"]["model"] = json!("large");
    let e = registry.builder(&read(&data)).expect_err("unknown below");
    assert!(UnknownPart::of(&e).is_some() && e.message().starts_with("sub-agent 'helper': "), "{e}");
}

#[test]
fn data_with_an_unknown_field_or_a_configuration_that_does_not_fit_is_refused() {
    let mut data = whole();
    data["max_step"] = json!(3);
    serde_json::from_value::<AgentDefinition>(data).expect_err("misspelt");
    let registry = registry(&ScriptedModel::new([]));
    for (wrong, why) in [
        (json!({"limits": {"modelcalls": 5}}), "configuration of middleware 'limits' is wrong"),
        (json!({"quiet": {"a": 1}}), "'quiet' takes no configuration"),
    ] {
        let mut data = whole();
        data["middleware"] = json!([wrong]);
        let e = registry.builder(&read(&data)).expect_err(why);
        assert!(e.message().contains(why), "{e}");
    }
}

#[test]
fn what_is_code_alone_is_named_when_an_agent_is_asked_for_as_data() {
    let model = ScriptedModel::new([]);
    let schema = StateSchema::default().key("typed", StateField::of::<u32>());
    let agent = Agent::builder("a", model.clone()).tool(double("mine")).model_layer(Identity::new()).state(schema);
    let agent = agent.middleware(Limits::new()).build().expect("builds");
    let e = agent.definition().expect_err("is not data");
    for part in ["model 'scripted'", "tool 'mine'", "middleware Identity", "middleware limits", "state key 'typed'"] {
        assert!(e.message().contains(part), "{part}: {e}");
    }
    let registered = registry(&model).builder(&read(&whole())).expect("begins");
    let changed = registered.model(ScriptedModel::new([])).build().expect("builds");
    assert!(changed.definition().expect_err("another model").message().ends_with("registry: model 'scripted'"));
}

#[tokio::test]
async fn a_copy_with_changes_is_another_agent_with_the_same_parts() {
    let model = ScriptedModel::new([Turn::text("one"), Turn::text("two")]);
    let registry = registry(&model);
    let agent =
        registry.builder(&read(&json!({"name": "a", "model": "small", "tools": ["f"], "middleware": ["quiet"]})));
    let agent = agent.and_then(agent_exec::AgentBuilder::build).expect("builds");
    let builder = agent.to_builder().name("b").without_tools().without_middleware("tool_errors").max_steps(1);
    let changed = builder.deadlines(Deadlines::new().run(ms(5_000))).required_variables(RequiredVariables::None);
    let changed = changed.build().expect("builds");
    let (then, now) = (agent.definition().expect("is data"), changed.definition().expect("is data"));
    assert_eq!((then.name.as_str(), then.tools.len(), then.middleware.len(), then.max_steps), ("a", 1, 1, 100));
    assert_eq!((now.name.as_str(), now.tools.len(), now.middleware.len(), now.max_steps), ("b", 0, 0, 1));
    assert_eq!((now.model, now.deadlines.run), (then.model, Some(ms(5_000))));
    assert_eq!(finished(agent.run("go").await).answer, "one");
    assert_eq!(finished(changed.run("go").await).answer, "two", "one model for both");
}
