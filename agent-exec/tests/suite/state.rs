//! The run's state: its inputs, the reads and writes of tools, and their order.

use std::sync::Arc;

use agent_core::{
    Error, ErrorKind, ExitReason, RunEnd, RunRequest, StateField, StateSchema, Tool, ToolOutput,
    storage::Merge,
    testing::{ScriptedModel, Turn},
};
use agent_exec::{Agent, AgentBuilder};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::common::{FnTool, Log, finished, gives, hooks, ms, results, tool};

/// Builds an agent with these state keys whose model calls these tools in one message and then says
/// "done".
fn calling<'a>(
    keys: impl IntoIterator<Item = (&'a str, StateField)>,
    calls: impl IntoIterator<Item = (&'a str, &'a str, Value)>,
) -> AgentBuilder {
    let schema = keys.into_iter().fold(StateSchema::default(), |schema, (key, field)| schema.key(key, field));
    Agent::builder("a", ScriptedModel::new([Turn::calls(calls), Turn::text("done")])).state(schema)
}

fn text() -> StateField {
    StateField::of::<String>()
}

async fn run(builder: AgentBuilder, request: RunRequest) -> agent_core::Finished {
    finished(builder.build().expect("builds").start(request).await)
}

/// Returns a tool that logs its parameter `token`, after a delay.
fn reader(name: &str, log: &Log) -> FnTool {
    let log = log.clone();
    let read = tool(name, move |req| {
        let log = log.clone();
        async move {
            tokio::time::sleep(ms(100)).await;
            log.note(format!("{} read {}", req.call.id, req.args["token"]));
            Ok(ToolOutput::text("ok"))
        }
    });
    read.takes(json!({"q": {}, "token": {"type": "string"}}), &["token"]).with(|o| o.reads("tok", "token"))
}

/// Returns a tool that writes a text to the state, after a delay.
fn writer(name: &str, key: &'static str, value: Value, millis: u64) -> FnTool {
    let written = tool(name, move |_| {
        let value = json!({ "o": value });
        async move {
            tokio::time::sleep(ms(millis)).await;
            Ok(ToolOutput::value(value))
        }
    });
    written.with(|o| o.writes(key, Some("o")))
}

// --- inputs ---

// Haystack 22 (B)
#[tokio::test]
async fn a_value_for_a_key_that_is_not_declared_or_does_not_fit_is_refused_before_the_model_is_called() {
    for (key, value, problem) in [
        ("zz", json!(1), "state key 'zz' is not declared; declared: tok"),
        ("messages", json!([]), "state key 'messages' is not declared; declared: tok"),
        ("tok", json!(1), "value for state key 'tok' does not fit: invalid type: integer `1`, expected a string"),
    ] {
        let model = ScriptedModel::new([]);
        let agent = Agent::builder("a", model.clone()).state(StateSchema::default().key("tok", text()));
        let e = agent.build().expect("builds").start(RunRequest::user("go").state(key, value)).await;
        let e = e.expect_err("refused");
        assert_eq!((e.kind(), e.message(), model.calls()), (ErrorKind::Config, problem, 0));
    }
}

// Haystack 25
#[tokio::test]
async fn a_key_that_was_declared_by_json_schema_has_its_values_checked() {
    let schema = StateSchema::default().key("n", StateField::schema(json!({"type": "integer"})));
    let agent = Agent::builder("a", ScriptedModel::new([Turn::text("hi")])).state(schema).build().expect("builds");
    let e = agent.start(RunRequest::user("go").state("n", "one")).await.expect_err("refused");
    assert!(e.message().starts_with("value for state key 'n' does not fit:"), "{e}");
    assert_eq!(finished(agent.start(RunRequest::user("go").state("n", 1)).await).state["n"], 1);
}

// Haystack 23, 24
#[tokio::test]
async fn a_run_starts_with_the_defaults_and_its_own_values_and_ends_with_what_became_of_them() {
    let list = StateField::of::<Vec<String>>().default_value(json!(["a"]));
    let total =
        Merge::custom(|old, new| Ok((old.and_then(|v| v.as_u64()).unwrap_or(0) + new.as_u64().unwrap_or(0)).into()));
    let keys = [("list", list), ("total", StateField::of::<u64>().merge(total)), ("last", text()), ("unset", text())];
    let writes = gives("f", json!({"item": "b", "n": 2, "last": "new"}))
        .with(|o| o.writes("list", Some("item")).writes("total", Some("n")).writes("last", Some("last")));
    let request = RunRequest::user("go").state("total", 40).state("last", "old");
    let end = run(calling(keys, [("1", "f", json!({}))]).tool(writes), request).await;
    assert_eq!(serde_json::to_value(end.state).expect("JSON"), json!({"list": ["a", "b"], "total": 42, "last": "new"}));
}

// Haystack 23
#[tokio::test]
async fn a_tools_own_merge_rule_beats_the_schemas() {
    let list = StateField::of::<Vec<String>>().default_value(json!(["a"]));
    let replaces = gives("f", json!({"o": ["b"]})).with(|o| o.writes_with("list", Some("o"), Some(Merge::Replace)));
    let end = run(calling([("list", list)], [("1", "f", json!({}))]).tool(replaces), RunRequest::user("go")).await;
    assert_eq!(end.state["list"], json!(["b"]));
}

// Haystack 26
#[tokio::test]
async fn the_state_of_a_run_that_waits_is_in_its_checkpoint_and_goes_on_from_there() {
    let keys = || [("seen", StateField::of::<Vec<String>>())];
    let asks = || {
        tool("ask", async |req| {
            let answer: String = req.ask("name", Value::Null)?;
            Ok(ToolOutput::value(json!({ "o": answer })))
        })
        .with(|o| o.writes("seen", Some("o")))
    };
    let calls = || [("1", "f", json!({})), ("2", "ask", json!({}))];
    let agent =
        || calling(keys(), calls()).tool(asks()).tool(writer("f", "seen", json!("a"), 0)).build().expect("builds");
    let end = agent().start(RunRequest::user("go")).await.expect("waits");
    let RunEnd::Interrupted(checkpoint) = end else { panic!("{end:?}") };
    assert_eq!(checkpoint.state["seen"], json!(["a"]));
    let kept = agent_core::Checkpoint::from_json(&checkpoint.to_json().expect("JSON")).expect("the same");

    let resumed = Agent::builder("a", ScriptedModel::new([Turn::text("done")]))
        .state(keys().into_iter().fold(StateSchema::default(), |s, (k, f)| s.key(k, f)))
        .tool(asks())
        .tool(writer("f", "seen", json!("a"), 0));
    // The same tools in another order are the same agent.
    let end = run(resumed, RunRequest::resume(kept, [("2/name".to_owned(), json!("b"))])).await;
    assert_eq!((end.state["seen"].clone(), end.reason), (json!(["a", "b"]), ExitReason::Text));
}

// --- reading ---

// Haystack 27
#[tokio::test(start_paused = true)]
async fn a_parameter_that_the_model_leaves_out_is_read_from_the_state_and_its_own_value_wins() {
    let log = Log::default();
    let calls = [("1", "f", json!({"q": 1})), ("2", "f", json!({"q": 1, "token": "own"}))];
    let builder = calling([("tok", text())], calls).tool(reader("f", &log));
    run(builder, RunRequest::user("go").state("tok", "kept")).await;
    assert_eq!(log.seen(), [r#"1 read "kept""#, r#"2 read "own""#]);
}

// Haystack 27
#[tokio::test]
async fn a_key_with_the_name_of_a_parameter_is_not_read_unless_the_tool_says_so() {
    let shy = tool("f", async |req| Ok(ToolOutput::text(req.args.to_string()))).takes(json!({"tok": {}}), &[]);
    let end =
        run(calling([("tok", text())], [("1", "f", json!({}))]).tool(shy), RunRequest::user("go").state("tok", "kept"));
    assert_eq!(results(&end.await.history)[0].1, "{}");
}

// Haystack 28 (B)
#[tokio::test(start_paused = true)]
async fn what_is_read_from_the_state_is_in_nothing_that_the_model_or_a_hook_is_shown() {
    let (model, log) = (
        ScriptedModel::new([
            Turn::calls([("1", "strict", json!({"q": 1})), ("2", "fails", json!({"q": 1}))]),
            Turn::text("done"),
        ]),
        Log::default(),
    );
    let noted = log.clone();
    let look = hooks::after_tool(move |_, req, out| {
        noted.note(format!("{:?} {:?} {out:?}", req.call, req.args));
        Ok(())
    });
    // One tool expects a number and would get a secret text; the other fails with an error that
    // contains it.
    let strict = reader("strict", &log).takes(json!({"q": {}, "token": {"type": "integer"}}), &["token"]);
    let failing = tool("fails", async |req| {
        let cause = Error::tool(req.args["token"].to_string());
        Err(Error::tool("the service is down").with_source(cause))
    });
    let failing = failing.takes(json!({"q": {}, "token": {}}), &[]).with(|o| o.reads("tok", "token"));
    let builder = Agent::builder("a", model.clone())
        .state(StateSchema::default().key("tok", text()))
        .tool(strict)
        .tool(failing)
        .middleware(look);
    let end = run(builder, RunRequest::user("go").state("tok", "SECRET123")).await;
    let told = results(&end.history);
    assert_eq!(told[0].1, "Invalid arguments for tool 'strict': 'token' must be an integer.");
    assert_eq!(told[1].1, "the service is down");
    let shown = format!("{:?} {:?} {:?}", end.history, model.requests(), log.seen());
    assert!(!shown.contains("SECRET123"), "{shown}");
    let asked = end.history.get(1).and_then(|m| m.as_assistant()).expect("the calls");
    assert!(asked.calls().all(|call| call.arguments == r#"{"q":1}"#), "the call stands as the model made it");
}

// --- writing ---

// Haystack 29
#[tokio::test]
async fn a_write_takes_the_field_that_it_names_if_the_value_has_it() {
    for (value, source, kept) in [
        (json!({"o": 1}), Some("o"), Some(json!(1))),
        (json!({}), Some("o"), None),
        (json!("text"), Some("o"), None),
        (json!({"o": 1}), None, Some(json!({"o": 1}))),
        (json!({"o": 1, "status": "error"}), Some("o"), None),
    ] {
        let writes = gives("f", value).with(|o| o.writes("k", source));
        let any = StateField::schema(json!({}));
        let end = run(calling([("k", any)], [("1", "f", json!({}))]).tool(writes), RunRequest::user("go")).await;
        assert_eq!(end.state.get("k"), kept.as_ref());
    }
}

// Haystack 30 (B)
#[tokio::test]
async fn a_value_that_cannot_be_merged_is_an_error_result_and_the_run_goes_on() {
    let failing = Merge::custom(|_, _| Err(Error::tool("no room")));
    let panicking = Merge::custom(|_, _| panic!("oops"));
    for (field, problem) in [
        (text().merge(failing), "no room"),
        (text().merge(panicking), "the merge failed unexpectedly"),
        (StateField::of::<u32>(), "does not fit"),
    ] {
        let builder = calling([("k", field)], [("1", "f", json!({}))]).tool(writer("f", "k", json!("a"), 0));
        let end = run(builder, RunRequest::user("go")).await;
        let (_, told, is_error) = results(&end.history).remove(0);
        assert!(is_error && told.contains(problem), "{told}");
        assert_eq!((end.state.get("k"), end.answer.as_str()), (None, "done"));
    }
}

// --- the order of calls ---

// Haystack 37
#[tokio::test(start_paused = true)]
async fn a_reader_sees_what_a_writer_of_the_same_message_wrote_wherever_it_stands() {
    let log = Log::default();
    for calls in [["r", "w"], ["w", "r"]] {
        let calls = calls.map(|name| (name, name, json!({})));
        let builder =
            calling([("tok", text())], calls).tool(reader("r", &log)).tool(writer("w", "tok", json!("PRODUCED"), 100));
        run(builder, RunRequest::user("go").state("tok", "OLD")).await;
    }
    assert_eq!(log.seen(), [r#"r read "PRODUCED""#, r#"r read "PRODUCED""#]);
}

// Haystack 36
#[tokio::test(start_paused = true)]
async fn only_calls_that_depend_on_each_other_wait() {
    let log = Log::default();
    let read = || ("r", json!({}));
    let write = || ("w", json!({}));
    for (calls, millis) in [
        (vec![read(), read()], 100),
        (vec![write(), write()], 100),
        (vec![read(), write()], 200),
        (vec![("r", json!({"token": "own"})), write()], 100),
        (vec![read(), ("whole", json!({})), write()], 300),
    ] {
        let ids: Vec<_> = (0..calls.len()).map(|i| i.to_string()).collect();
        let calls = ids.iter().zip(calls).map(|(id, (name, args))| (id.as_str(), name, args));
        let whole = crate::common::slow("whole", 100, &log).with(agent_core::ToolOptions::uses_state);
        let builder = calling([("tok", text())], calls).tools(
            [reader("r", &log), writer("w", "tok", json!("new"), 100), whole].map(|t| Arc::new(t) as Arc<dyn Tool>),
        );
        let started = Instant::now();
        run(builder, RunRequest::user("go").state("tok", "old")).await;
        assert_eq!(started.elapsed(), ms(millis));
    }
}

// Haystack 36
#[tokio::test(start_paused = true)]
async fn writes_of_one_message_are_merged_in_call_order_whichever_call_is_done_first() {
    let list = StateField::of::<Vec<String>>();
    let calls = [("1", "slow", json!({})), ("2", "fast", json!({}))];
    let builder = calling([("list", list)], calls).tool(writer("slow", "list", json!("first"), 200)).tool(writer(
        "fast",
        "list",
        json!("second"),
        100,
    ));
    let started = Instant::now();
    let end = run(builder, RunRequest::user("go")).await;
    assert_eq!((end.state["list"].clone(), started.elapsed()), (json!(["first", "second"]), ms(200)));
}

// Haystack 28 (B)
#[tokio::test]
async fn a_failing_tool_does_not_show_the_model_what_was_injected() {
    let ask = |name: &str| {
        tool(name, |req| async move {
            let url = format!("GET /?q=1&token={} failed", req.args["token"].as_str().unwrap_or_default());
            if &*req.call.name == "errs" { Err(Error::tool(url)) } else { Ok(ToolOutput::error(url)) }
        })
        .takes(json!({"q": {}, "token": {"type": "string"}}), &[])
        .with(|o| o.reads("tok", "token"))
    };
    let calls = [("1", "errs", json!({"q": 1})), ("2", "tells", json!({"q": 1}))];
    let agent = calling([("tok", text())], calls).tool(ask("errs")).tool(ask("tells"));
    let end = run(agent, RunRequest::user("go").state("tok", "SECRET123")).await;
    let told: Vec<_> = results(&end.history).into_iter().map(|(_, text, _)| text).collect();
    assert_eq!(told, ["GET /?q=1&token=[hidden] failed"; 2]);
}
