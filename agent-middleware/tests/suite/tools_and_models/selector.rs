//! Tools that are selected for a call.

use agent_core::{
    Checkpoint, Error, ErrorKind, ModelRequest, RunRequest, ToolSpec,
    testing::{ScriptedModel, Turn},
};
use agent_exec::{Agent, AgentBuilder};
use agent_middleware::{ToolSelector, tools::ToolSelectorConfig};
use serde_json::json;

use super::{asks, finished, offered, run, says, tool, warnings};

const ALL: [&str; 4] = ["read", "write", "clock", "wait"];

fn builder(model: &ScriptedModel) -> AgentBuilder {
    Agent::builder("a", model.clone())
        .tool(tool("read", "Reads."))
        .tool(tool("write", "Writes."))
        .tool(tool("clock", "Tells the time."))
        .tool(asks("wait"))
}

fn agent(model: &ScriptedModel, selector: ToolSelector) -> Agent {
    builder(model).middleware(selector).build().expect("builds")
}

fn two_steps() -> ScriptedModel {
    ScriptedModel::new([Turn::call("c1", "read", json!({})), Turn::text("so")])
}

#[tokio::test]
async fn a_model_picks_the_tools_of_each_call_and_what_it_uses_counts() {
    let small = says(&[r#"["read", "write", "wait"]"#, r#"Sure: {"tools": ["clock"]}"#]);
    let model = two_steps();
    let end = run(&agent(&model, ToolSelector::new(small.clone()).max_tools(2))).await;
    assert_eq!(offered(&model), [vec!["read", "write"], vec!["clock"]]);
    assert_eq!(end.usage.calls, 4);
    let seen = small.requests();
    let told = seen[0].system.clone().expect("is told");
    assert!(told.contains("- write: Writes.") && told.contains("at most 2"), "{told}");
    assert_eq!(seen[0].texts(), ["<user>\nGo.\n</user>"]);
    assert_eq!(seen[1].texts(), ["<user>\nGo.\n</user>\n<newest>\nread\n</newest>"]);
}

#[tokio::test]
async fn some_tools_are_offered_in_any_case_and_nobody_is_asked_about_few() {
    let model = says(&["so"]);
    run(&agent(&model, ToolSelector::new(says(&["[]"])).max_tools(2).always_include("cl*"))).await;
    assert_eq!(offered(&model), [["clock"]], "an empty choice is a choice");
    let (model, never) = (says(&["so"]), says(&[]));
    run(&agent(&model, ToolSelector::new(never.clone()).max_tools(3).always_include("clock"))).await;
    assert_eq!((offered(&model), never.calls()), (vec![ALL.map(String::from).to_vec()], 0));
}

#[tokio::test]
async fn after_a_bad_answer_all_tools_are_offered_and_a_warning_says_so() {
    let bad = [
        (Turn::text("Hm."), "no JSON array of names"),
        (Turn::text(r#"["delete", 5]"#), "none of the tools that were named is there"),
        (Turn::error(|| Error::new(ErrorKind::Overloaded, "busy")), "busy"),
    ];
    for (turn, why) in bad {
        let (warnings, events) = warnings();
        let model = says(&["so"]);
        let selector = ToolSelector::new(ScriptedModel::new([turn])).max_tools(1);
        run(&builder(&model).middleware(events).middleware(selector).build().expect("builds")).await;
        assert_eq!(offered(&model), [ALL]);
        let warnings = warnings.lock().expect("lock").clone();
        assert!(warnings.len() == 1 && warnings[0].contains(why), "{warnings:?}");
    }
}

#[tokio::test]
async fn what_ends_the_run_is_no_bad_answer() {
    let small = ScriptedModel::new([Turn::error(|| Error::new(ErrorKind::Store, "the disk is gone"))]);
    let model = says(&[]);
    let error = agent(&model, ToolSelector::new(small).max_tools(1)).run("Go.").await.expect_err("fails");
    assert_eq!((error.kind(), model.calls()), (ErrorKind::Store, 0));
}

#[tokio::test]
async fn a_function_picks_too() {
    let model = two_steps();
    let picks = |req: &ModelRequest, tools: &[&ToolSpec]| {
        tools.iter().skip(req.messages.len()).map(|tool| tool.name.clone()).collect()
    };
    run(&agent(&model, ToolSelector::by(picks).max_tools(3))).await;
    assert_eq!(offered(&model), [vec!["write", "clock", "wait"], vec!["wait"]]);
}

#[tokio::test]
async fn a_choice_for_the_run_is_made_once_and_holds_in_another_process() {
    let model = ScriptedModel::new([Turn::call("c1", "wait", json!({})), Turn::text("so")]);
    let small = says(&[r#"["wait"]"#]);
    let agent = || agent(&model, ToolSelector::new(small.clone()).max_tools(1).once_per_run());
    let end = agent().run("Go.").await.expect("runs");
    let checkpoint = end.checkpoint().expect("waits").to_json().expect("serialises");
    let checkpoint = Checkpoint::from_json(&checkpoint).expect("parses");
    let answers = checkpoint.questions.iter().map(|q| (q.id.clone(), json!("well"))).collect::<Vec<_>>();
    finished(agent().start(RunRequest::resume(checkpoint, answers)).await);
    assert_eq!(offered(&model), [["wait"], ["wait"]]);
    assert_eq!(small.calls(), 1);
}

#[test]
fn the_configuration_is_data_and_refuses_what_it_does_not_know() {
    let config: ToolSelectorConfig = serde_json::from_value(json!({"always_include": ["a"]})).expect("reads");
    assert_eq!((config.max_tools, config.once_per_run), (10, false));
    assert!(serde_json::from_value::<ToolSelectorConfig>(json!({"max": 1})).is_err());
}
