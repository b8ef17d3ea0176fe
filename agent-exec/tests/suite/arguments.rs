//! Arguments: repaired, converted, completed and checked before a tool receives them.

use agent_core::{
    Flow, Message, ToolOutput,
    testing::{HookTrace, ScriptedModel, Turn},
};
use agent_exec::Agent;
use serde_json::{Value, json};

use crate::common::{FnTool, Log, Watch, double, finished, hooks, results, tool};

/// A tool that logs its arguments and returns them.
fn echo(log: &Log) -> FnTool {
    let log = log.clone();
    tool("echo", move |req| {
        log.note(req.args.to_string());
        async move { Ok(ToolOutput::text(req.args.to_string())) }
    })
}

/// Runs an agent whose model calls `tool` with these raw arguments, and then says "done".
async fn call(tool: FnTool, arguments: &str) -> agent_core::Finished {
    let name = agent_core::Tool::spec(&tool).name;
    let model = ScriptedModel::new([Turn::raw_call("1", &name, arguments), Turn::text("done")]);
    finished(Agent::builder("a", model).tool(tool).build().expect("builds").run("go").await)
}

/// Returns the text of the only tool result, and whether it is an error.
fn told(end: &agent_core::Finished) -> (String, bool) {
    let (_, text, is_error) = results(&end.history).remove(0);
    (text, is_error)
}

/// Returns the arguments of the only call as stored in the conversation.
fn stored(end: &agent_core::Finished) -> String {
    let message = end.history.get(1).and_then(Message::as_assistant).expect("the call");
    message.calls().map(|call| call.arguments.clone()).collect()
}

// --- as the model wrote them ---

// NexAU 16
#[tokio::test]
async fn arguments_with_a_missing_brace_are_mended_run_and_kept_as_valid_json() {
    let (log, watch) = (Log::default(), Watch::default());
    let model = ScriptedModel::new([Turn::raw_call("1", "echo", r#"{"file_path": "/a.md""#), Turn::text("done")]);
    let agent = Agent::builder("a", model.clone()).tool(echo(&log)).middleware(watch.clone()).build().expect("builds");
    let end = finished(agent.run("go").await);
    assert_eq!(log.seen(), [r#"{"file_path":"/a.md"}"#]);
    assert_eq!(stored(&end), r#"{"file_path":"/a.md"}"#);
    assert_eq!(model.requests()[1].messages[1], *end.history.get(1).expect("there"), "the provider gets the same");
    assert_eq!(watch.warnings().len(), 1);
    assert!(
        watch.warnings()[0].starts_with("arguments of call '1' to 'echo' were repaired:"),
        "{:?}",
        watch.warnings()
    );
}

// NexAU 17
#[tokio::test]
async fn what_is_no_object_is_wrapped_so_that_a_tool_always_gets_one() {
    for (arguments, seen) in
        [("not-json", r#"{"raw_arguments":"not-json"}"#), ("[1,2]", r#"{"_":[1,2]}"#), ("", "{}"), ("null", "{}")]
    {
        let log = Log::default();
        let end = call(echo(&log), arguments).await;
        assert_eq!(log.seen(), [seen]);
        let kept = stored(&end);
        assert!(kept.is_empty() || serde_json::from_str::<Value>(&kept).is_ok(), "a provider takes {kept:?}");
    }
}

// NexAU 17
#[tokio::test]
async fn wrapped_text_fails_the_check_of_a_tool_that_does_not_know_it() {
    let end = call(double("f"), "not-json").await;
    let (text, is_error) = told(&end);
    assert!(is_error && text.contains("'x' is required") && text.contains("raw_arguments"), "{text}");
}

#[tokio::test]
async fn arguments_for_an_unknown_tool_are_kept_as_valid_json_too() {
    let model = ScriptedModel::new([Turn::raw_call("1", "ghost", "{oops"), Turn::text("done")]);
    let end = finished(Agent::builder("a", model).tool(double("f")).build().expect("builds").run("go").await);
    assert_eq!(stored(&end), r#"{"raw_arguments":"{oops"}"#);
}

// NexAU 18
#[tokio::test]
async fn text_is_converted_to_the_type_that_the_schema_wants() {
    for (schema, text, seen) in [
        (json!({"type": "boolean"}), "yes", json!(true)),
        (json!({"type": "boolean"}), "0", json!(false)),
        (json!({"type": "integer"}), "5", json!(5)),
        (json!({"type": "array"}), "a, b", json!(["a", "b"])),
        (json!({"type": "string"}), "5", json!("5")),
    ] {
        let log = Log::default();
        call(echo(&log).takes(json!({ "v": schema }), &["v"]), &json!({ "v": text }).to_string()).await;
        assert_eq!(log.seen(), [json!({ "v": seen }).to_string()]);
    }
}

// NexAU 18
#[tokio::test]
async fn text_that_is_not_of_the_wanted_type_stays_text_and_is_refused() {
    let log = Log::default();
    let end = call(echo(&log).takes(json!({"v": {"type": "object"}}), &["v"]), r#"{"v": "no object"}"#).await;
    assert_eq!(
        told(&end),
        (r#"Invalid arguments for tool 'echo': 'v' must be an object, got "no object"."#.to_owned(), true,)
    );
    assert!(log.seen().is_empty(), "the tool was not run");
}

// --- the check ---

// NexAU 19, Haystack 34 (B)
#[tokio::test]
async fn every_problem_is_told_at_once_and_the_tool_is_not_run() {
    let (log, trace) = (Log::default(), HookTrace::new("t"));
    let strict = echo(&log).takes(json!({"x": {"type": "integer"}, "y": {"type": "string"}}), &["x", "y"]);
    let calls = [("1", "echo", json!({})), ("2", "echo", json!({"x": "notint", "y": "a", "z": 1}))];
    let model = ScriptedModel::new([Turn::calls(calls), Turn::text("done")]);
    let agent = Agent::builder("a", model).tool(strict).middleware(trace.clone()).build().expect("builds");
    let end = finished(agent.run("go").await);
    let told = results(&end.history);
    for (result, problems) in told.iter().zip([
        ["tool 'echo'", "'x' is required", "'y' is required"],
        ["tool 'echo'", "'x' must be an integer", "unknown parameter 'z'"],
    ]) {
        assert!(result.2 && problems.iter().all(|problem| result.1.contains(problem)), "{}", result.1);
    }
    assert!(log.seen().is_empty() && end.tool_calls.is_empty());
    assert!(trace.seen_of("before_tool(").is_empty(), "nobody is asked to approve what cannot run");
}

#[tokio::test]
async fn arguments_that_a_hook_changed_are_checked_again() {
    for (x, result) in [(json!(21), ("42", false)), (json!("one"), ("'x' must be an integer, got \"one\"", true))] {
        let rewrite = hooks::before_tool(move |_, req| {
            req.args = std::sync::Arc::new(json!({ "x": x }));
            Ok(Flow::Continue)
        });
        let model = ScriptedModel::new([Turn::call("1", "f", json!({"x": 1})), Turn::text("done")]);
        let agent = Agent::builder("a", model).tool(double("f")).middleware(rewrite).build().expect("builds");
        let (text, is_error) = told(&finished(agent.run("go").await));
        assert!(text.contains(result.0) && is_error == result.1, "{text}");
    }
}

// --- arguments that the agent gives ---

// NexAU 19
#[tokio::test]
async fn an_argument_that_the_agent_gives_is_taken_unless_the_model_gives_its_own() {
    for (arguments, seen) in [(json!({}), "fixed"), (json!({"mode": "own"}), "own")] {
        let log = Log::default();
        let echo = echo(&log).takes(json!({"mode": {"type": "string"}}), &["mode"]).with(|o| o.arg("mode", "fixed"));
        call(echo, &arguments.to_string()).await;
        assert_eq!(log.seen(), [json!({ "mode": seen }).to_string()]);
    }
}

// NexAU 19
#[tokio::test]
async fn an_argument_that_only_the_agent_knows_passes_the_check_and_one_that_nobody_knows_does_not() {
    let log = Log::default();
    let given = || echo(&log).takes(json!({}), &[]).with(|o| o.arg("tenant", 7));
    call(given(), "{}").await;
    assert_eq!(log.seen(), [r#"{"tenant":7}"#]);
    let (text, is_error) = told(&call(given(), r#"{"other": 1}"#).await);
    assert!(is_error && text.contains("unknown parameter 'other'") && !text.contains("tenant"), "{text}");
    assert_eq!(log.seen().len(), 1);
}
