//! Arguments: repaired, converted, completed and checked before a tool receives them.

use agent_core::{
    AssistantMessage, Block, Effect, FinishReason, Flow, Message, ToolOutput,
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
async fn a_tool_that_accepts_it_runs_with_a_missing_brace_mended_and_the_history_keeps_valid_json() {
    let (log, watch) = (Log::default(), Watch::default());
    let model = ScriptedModel::new([Turn::raw_call("1", "echo", r#"{"file_path": "/a.md""#), Turn::text("done")]);
    let accepting = echo(&log).with(|options| options.effect(Effect::Pure).accepts_truncated());
    let agent = Agent::builder("a", model.clone()).tool(accepting).middleware(watch.clone()).build().expect("builds");
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

#[tokio::test]
async fn a_call_whose_arguments_were_cut_off_is_not_run_and_the_model_is_told_why() {
    let length = || FinishReason::Length;
    for (arguments, finish) in [
        (r#"{"path": "notes.md", "content": "line 1\nli"#, length()),
        (r#"{"commands": ["npm install", "npm test""#, length()),
        (r#"{"commands": ["npm install", "npm test""#, FinishReason::ToolCalls),
        (r#"{"path": "notes.md", "content": "li"#, FinishReason::Stop),
        (r#"{"n": 12"#, FinishReason::ToolCalls),
        (r#""{\"path\": \"a"#, length()),
        (r#""{\"path\": \"a""#, FinishReason::ToolCalls),
        (r#"{"closed": "by the server"}"#, length()),
        ("", length()),
    ] {
        let (log, watch) = (Log::default(), Watch::default());
        let cut = Turn::raw_call("1", "echo", arguments).finish(finish.clone());
        let model = ScriptedModel::new([cut, Turn::text("done")]);
        let agent = Agent::builder("a", model).tool(echo(&log)).middleware(watch.clone()).build().expect("builds");
        let end = finished(agent.run("go").await);
        assert!(log.seen().is_empty(), "{arguments} with {finish:?}: ran with {:?}", log.seen());
        let (text, is_error) = told(&end);
        assert!(is_error && text.contains("cut off at the output limit"), "{arguments} with {finish:?}: {text}");
        assert_eq!(end.answer, "done");
        let kept = stored(&end);
        assert!(kept.is_empty() || serde_json::from_str::<Value>(&kept).is_ok(), "a provider takes {kept:?}");
        assert!(watch.warnings().iter().any(|warning| warning.contains("cut off")), "{:?}", watch.warnings());
    }
}

#[tokio::test]
async fn a_tool_with_effects_cannot_accept_arguments_that_were_cut_off() {
    let log = Log::default();
    let end = call(echo(&log).with(agent_core::ToolOptions::accepts_truncated), r#"{"a": "b"#).await;
    assert!(told(&end).1 && log.seen().is_empty());
}

#[tokio::test]
async fn calls_before_the_one_that_was_cut_off_run() {
    let log = Log::default();
    let (whole, cut) = (Block::tool_call("1", "echo", r#"{"n": 1}"#), Block::tool_call("2", "echo", r#"{"n": "#));
    let turn = Turn::message(AssistantMessage::new(vec![whole, cut])).finish(FinishReason::Length);
    let model = ScriptedModel::new([turn, Turn::text("done")]);
    let end = finished(Agent::builder("a", model).tool(echo(&log)).build().expect("builds").run("go").await);
    assert_eq!(log.seen(), [r#"{"n":1}"#]);
    assert_eq!(results(&end.history).iter().map(|result| result.2).collect::<Vec<_>>(), [false, true]);
}

#[tokio::test]
async fn a_call_with_an_empty_list_for_arguments_runs_without_any_and_an_object_is_kept() {
    for arguments in ["[]", "null", " [ ] "] {
        let log = Log::default();
        let end = call(echo(&log), arguments).await;
        assert_eq!((log.seen(), stored(&end)), (vec!["{}".to_owned()], "{}".to_owned()), "{arguments}");
    }
}

#[tokio::test]
async fn an_unpaired_surrogate_in_arguments_becomes_a_replacement_character() {
    for (arguments, seen) in [
        (r#"{"a":"x \ud83d"}"#, json!({"a": "x \u{fffd}"})),
        (r#"{"a":"\ud83d\ude00 \ude00!"}"#, json!({"a": "\u{1f600} \u{fffd}!"})),
        (r#"{"a":"\ud83d\u0041"}"#, json!({"a": "\u{fffd}A"})),
    ] {
        let log = Log::default();
        call(echo(&log), arguments).await;
        assert_eq!(log.seen(), [seen.to_string()], "{arguments}");
    }
}

#[tokio::test]
async fn an_integer_reaches_the_tool_with_every_digit_that_the_model_wrote() {
    let whole = |log: &Log| echo(log).takes(json!({"n": {"type": "integer"}}), &["n"]);
    for n in ["9007199254740993", "-9223372036854775808", "18446744073709551615"] {
        let log = Log::default();
        call(whole(&log), &format!(r#"{{"n":{n}}}"#)).await;
        assert_eq!(log.seen(), [format!(r#"{{"n":{n}}}"#)]);
    }
    let log = Log::default();
    let end = call(whole(&log), r#"{"n":12345678901234567890123}"#).await;
    assert_eq!(log.seen(), [r#"{"n":"12345678901234567890123"}"#]);
    assert_eq!(stored(&end), r#"{"n":12345678901234567890123}"#, "the model's own text is kept");
    let log = Log::default();
    let end = call(whole(&log), r#"{"n":12345678901234567.5}"#).await;
    assert!(log.seen().is_empty() && told(&end).0.contains("12345678901234567.5"), "{}", told(&end).0);
    let text = echo(&log).takes(json!({"n": {"type": ["integer", "string"]}}), &["n"]);
    call(text, r#"{"n":12345678901234567890123}"#).await;
    assert_eq!(log.seen(), [r#"{"n":"12345678901234567890123"}"#]);
}

#[tokio::test]
async fn a_name_with_tokens_or_a_prefix_of_the_models_own_format_calls_the_tool_that_is_meant() {
    for name in
        ["echo<|channel|>commentary", "functions.echo", "functions.echo<|channel|>commentary", "default_api.echo"]
    {
        let log = Log::default();
        let model = ScriptedModel::new([Turn::raw_call("1", name, r#"{"q":1}"#), Turn::text("done")]);
        let end = finished(Agent::builder("a", model).tool(echo(&log)).build().expect("builds").run("go").await);
        assert_eq!((log.seen(), end.tool_calls["echo"]), (vec![r#"{"q":1}"#.to_owned()], 1), "{name}");
    }
    let model = ScriptedModel::new([Turn::raw_call("1", "functions.ghost", "{}"), Turn::text("done")]);
    let end = finished(Agent::builder("a", model).tool(double("f")).build().expect("builds").run("go").await);
    assert!(told(&end).0.contains("Tool 'functions.ghost' not found"), "{}", told(&end).0);
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
