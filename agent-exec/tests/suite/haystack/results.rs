//! Results of a run, and events during it.

use std::collections::{BTreeMap, HashMap};

use agent_core::{
    Budget, Caps, Chunk, EventKind, ExitReason, Key, RunRequest, State, StateField, StateSchema, Usage,
    testing::{ScriptedModel, Turn},
};
use agent_exec::Agent;
use agent_middleware::Limits;
use futures::StreamExt;
use serde_json::json;

use crate::common::{double, fails, finished, gives, roles};

#[tokio::test]
async fn a_result_has_the_messages_the_counts_the_usage_the_reason_and_the_state() {
    let schema = StateSchema::default().key("total", StateField::of::<i64>());
    let f = gives("f", json!({"total": 6})).with(|options| options.writes("total", Some("total")));
    let model = ScriptedModel::new([Turn::call("a", "f", json!({})), Turn::text("done")]);
    let agent = Agent::builder("a", model).tool(f).state(schema).build().expect("builds");
    let end = finished(agent.run("go").await);
    assert_eq!(roles(&end.history), ["user", "assistant", "tool", "assistant"]);
    assert_eq!(end.last_message().map(agent_core::Message::text).as_deref(), Some("done"));
    assert_eq!((end.steps, &end.reason, end.tool_calls["f"]), (2, &ExitReason::Text, 1));
    assert_eq!((end.usage.input, end.usage.output, &end.state["total"]), (20, 20, &json!(6)));
}

// Haystack 26
#[test]
fn a_state_goes_through_data_and_back_and_what_is_no_data_is_refused_when_it_is_set() {
    let schema = || {
        let schema = StateSchema::default().key("list", StateField::of::<Vec<String>>());
        schema.key("odd", StateField::schema(json!({}))).key("secret", StateField::of::<String>())
    };
    let state = State::new(schema(), BTreeMap::new()).expect("valid");
    for (name, value) in [("list", json!(["a"])), ("secret", json!("s"))] {
        state.set_value(name, value, None).expect("fits");
    }
    let odd: Key<HashMap<(u8, u8), u8>> = Key::new("odd");
    state.set(&odd, &HashMap::from([((1, 2), 3)])).expect_err("a map by pairs is no JSON");

    let text = serde_json::to_string(&state.snapshot()).expect("serialises");
    let mut values: BTreeMap<_, _> = serde_json::from_str(&text).expect("parses");
    assert_eq!(State::new(schema(), BTreeMap::clone(&values)).expect("fits").snapshot(), state.snapshot());
    values.remove("secret"); // not to be stored
    let back = State::new(schema(), values).expect("fits");
    assert_eq!((back.get_value("list"), back.has("secret"), back.has("odd")), (Some(json!(["a"])), false, false));
}

// Haystack 74
#[tokio::test]
async fn results_are_told_after_the_text_one_for_each_call_and_then_that_they_are_all() {
    let calls = Turn::text("let me see").and_call("1", "f", json!({"x": 3})).and_call("2", "ghost", json!({}));
    let model = ScriptedModel::new([calls.and_call("3", "bad", json!({})), Turn::text("done")]);
    let agent = Agent::builder("a", model).tool(double("f")).tool(fails("bad", "no")).streaming(true);
    let mut run = agent.build().expect("builds").start(RunRequest::user("go"));
    let mut told = Vec::new();
    while let Some(event) = run.next().await {
        told.push(match event.kind {
            EventKind::Chunk(Chunk::Text { .. }) => "text".to_owned(),
            EventKind::ToolAnswered { call_id, output, .. } => format!("{call_id}: {}", output.is_error()),
            EventKind::ToolsAnswered { step } => format!("all of step {step}"),
            _ => continue,
        });
    }
    finished(run.await);
    told.dedup();
    let results = told.iter().skip(1).take(3).map(String::as_str).collect::<std::collections::BTreeSet<_>>();
    assert_eq!(results, ["1: false", "2: true", "3: true"].into(), "unknown tools too");
    assert_eq!((told.len(), &*told[0], &*told[4], &*told[5]), (6, "text", "all of step 1", "text"), "{told:?}");
}

// Haystack 74 (B)
#[test]
fn a_chunk_is_of_one_kind() {
    let text = serde_json::to_value(Chunk::Text { index: 0, delta: "a".to_owned() }).expect("serialises");
    let reasoning = serde_json::to_value(Chunk::Reasoning { index: 0, delta: "b".to_owned() }).expect("serialises");
    serde_json::from_value::<Chunk>(text.clone()).expect("one kind");
    let mut both = text;
    let fields = reasoning.as_object().expect("an object").clone();
    for (name, value) in fields {
        both.as_object_mut().expect("an object").entry(name).or_insert(value);
    }
    assert!(serde_json::from_value::<Chunk>(both.clone()).is_err(), "{both}");
}

// Haystack 72
#[tokio::test]
async fn when_its_tokens_are_used_up_a_run_ends_before_the_next_model_call() {
    let call = |id: &str| Turn::call(id, "f", json!({"x": 1})).usage(Usage::new(50, 10));
    let model = ScriptedModel::new([call("1"), call("2"), call("3")]);
    let builder = Agent::builder("a", model.clone()).tool(double("f")).middleware(Limits::new().tokens(100));
    let end = finished(builder.build().expect("builds").run("go").await);
    assert_eq!((model.calls(), end.steps, end.tool_calls["f"]), (2, 2, 2));
    assert!(matches!(&end.reason, ExitReason::Stopped(why) if why.contains("at most 100 tokens")), "{:?}", end.reason);

    let model = ScriptedModel::new([call("1"), call("2"), call("3")]);
    let budget = Budget::new(Caps::default().tokens(100));
    let end =
        finished(Agent::builder("a", model).tool(double("f")).budget(budget).build().expect("builds").run("go").await);
    assert_eq!(end.reason, ExitReason::Budget);
}
