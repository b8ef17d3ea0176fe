//! Failover to another model.

use std::sync::Arc;

use agent_core::{
    Chunk, ErrorKind, EventKind, Message, Model, ModelInfo, ModelParams, ModelRequest, ModelResponse, Result, Retry,
    ToolSpec,
};
use agent_llm::{
    Failover, ScriptedModel, Turn,
    failover::{FailoverBuilder, Sticky},
};
use serde_json::json;
use tokio::time::advance;

use super::{
    common::{Answer, Provider, ask, ask_to_stream, hello, listen, run},
    error, fails, observed, secs, texts,
};

fn of(models: &[ScriptedModel]) -> FailoverBuilder {
    models[1..].iter().fold(Failover::builder(models[0].clone()), |all, model| all.fallback(model.clone()))
}

fn named(name: &str, turns: impl IntoIterator<Item = Turn>) -> ScriptedModel {
    ScriptedModel::new(turns).with_info(ModelInfo::new(name).with_provider("acme"))
}

/// Calls a failover of two models, the first of which fails with `kind`.
async fn after(kind: ErrorKind, change: impl FnOnce(FailoverBuilder) -> FailoverBuilder) -> Result<ModelResponse> {
    let models = [named("a", [fails(kind)]), named("b", [Turn::text("from b")])];
    change(of(&models)).build().expect("builds").call(ask()).await
}

fn calls<const N: usize>(models: &[ScriptedModel; N]) -> [usize; N] {
    models.each_ref().map(ScriptedModel::calls)
}

#[tokio::test]
async fn a_model_that_is_overloaded_is_followed_by_the_next_with_all_tools_and_parameters() {
    let [first, second] = [
        Provider::new([Answer::json(503, r#"{"error":{"message":"busy"}}"#)]),
        Provider::new([Answer::json(200, hello())]),
    ];
    let model = |name: &str, provider: &Provider| {
        agent_llm::model(format!("openai:{name}")).transport(provider.clone()).retries(0).build()
    };
    let failover = Failover::builder(model("large", &first).expect("a model"))
        .fallback(model("small", &second).expect("a model"))
        .build()
        .expect("builds");
    let mut req = ask();
    req.tools = [ToolSpec::new("weather", "Tells it.", json!({"type": "object"}))].into_iter().collect();
    req.params = Arc::new(ModelParams::default().temperature(0.5).max_tokens(7).extra("x", 1));
    let (kept, params) = (req.params.clone(), (*req.params).clone());
    failover.call(req).await.expect("the second answers");
    let [mut asked_first, asked_second] = [first.bodies().remove(0), second.bodies().remove(0)];
    assert_eq!((&asked_first["model"], &asked_second["model"]), (&json!("large"), &json!("small")));
    asked_first["model"] = json!("small");
    assert_eq!(asked_first, asked_second, "both were asked the same");
    assert_eq!(asked_second["tools"][0]["function"]["name"], "weather");
    assert_eq!(*kept, params, "nobody changed the caller's own");
}

#[tokio::test]
async fn what_another_model_may_do_better_with_moves_on_and_nothing_else() {
    use ErrorKind::*;
    let moves = [RateLimited, Overloaded, Authentication, Quota, Truncated, Timeout, Transport, Protocol, Provider];
    for kind in moves.into_iter().chain([ContextOverflow]) {
        assert_eq!(after(kind, |b| b).await.expect("the second answers").message.text(), "from b");
    }
    for kind in [InvalidRequest, ContentFiltered, Middleware, Unexpected, Cancelled, Interrupted, Limit] {
        let error = after(kind, |b| b).await.expect_err("not caught");
        assert_eq!((error.kind(), error.context("attempts")), (kind, None));
    }
}

#[tokio::test]
async fn kinds_can_be_added_and_taken_away() {
    use ErrorKind::*;
    after(InvalidRequest, |b| b.on([InvalidRequest])).await.expect("the second answers");
    assert_eq!(after(Quota, |b| b.never([Quota])).await.expect_err("stays").kind(), Quota);
    after(InvalidRequest, |b| b.when(|e| e.message() == "why")).await.expect("the second answers");
    assert!(after(InvalidRequest, |b| b.when(|e| e.message() == "another")).await.is_err());
    for kind in [Cancelled, Interrupted, Stopped, Limit, Busy, Store, NonDeterminism] {
        assert_eq!(after(kind, |b| b.when(|_| true)).await.expect_err("it concerns the run").kind(), kind);
        let models = [named("a", []), named("b", [])];
        assert_eq!(of(&models).on([kind]).build().expect_err("refused").kind(), Config);
    }
}

#[tokio::test]
async fn when_nobody_is_left_the_last_error_says_what_each_of_them_answered() {
    let limited =
        |secs: u64| move || error(ErrorKind::RateLimited).with_retry(Retry::Temporary(Some(super::secs(secs))));
    let refused =
        Turn::error(|| error(ErrorKind::Authentication).with_retry(Retry::Permanent).with_context("status", "401"));
    let models = [named("a", [Turn::error(limited(7))]), named("b", [Turn::error(limited(3))]), named("c", [refused])];
    let error = of(&models).build().expect("builds").call(ask()).await.expect_err("all failed");
    assert_eq!((error.kind(), error.context("status")), (ErrorKind::Authentication, Some("401")), "the last error");
    let attempts = "acme/a: rate limited: why; acme/b: rate limited: why; acme/c: authentication: why";
    assert_eq!(error.context("attempts"), Some(attempts));
    assert_eq!(error.retry(), Retry::Temporary(Some(secs(7))), "not before everybody who asked for it had his time");
}

#[tokio::test]
async fn every_move_is_announced() {
    let models = [
        named("a", [fails(ErrorKind::Quota)]),
        ScriptedModel::new([fails(ErrorKind::Timeout)]),
        named("c", [Turn::text("ok")]),
    ];
    let (_run, req, reports) = observed();
    let response = of(&models).build().expect("builds").call(req).await.expect("an answer");
    assert_eq!(response.model.as_deref(), Some("c"), "the answer says who gave it");
    let moved = |from: &str, to: &str, kind: ErrorKind, error: &str| EventKind::Failover {
        from: from.into(),
        to: to.into(),
        kind,
        error: error.into(),
    };
    let expected = [
        moved("acme/a", "scripted", ErrorKind::Quota, "quota: why"),
        moved("scripted", "acme/c", ErrorKind::Timeout, "timeout: why"),
    ];
    assert_eq!(reports.seen(), expected);
}

#[tokio::test]
async fn a_failover_in_the_middle_of_a_stream_takes_back_what_was_said() {
    let cut = Turn::text("from a").then_fail(|| error(ErrorKind::Truncated));
    let models = [named("a", [cut]), named("b", [fails(ErrorKind::Overloaded)]), named("c", [Turn::text("from c")])];
    let mut req = ask_to_stream();
    let heard = listen(&mut req);
    let response = of(&models).build().expect("builds").call(req).await.expect("an answer");
    assert_eq!(texts(&heard), ["from ", "a", "|", "from ", "c"], "and nothing after the second, which was silent");
    assert_eq!(response.message.text(), "from c");
}

#[tokio::test]
async fn where_chunks_are_changed_the_message_is_made_of_the_last_models_alone() {
    let cut = Turn::text("one ").then_fail(|| error(ErrorKind::Truncated));
    let models = [named("a", [cut]), named("b", [Turn::text("two")])];
    let mut req = ask_to_stream();
    req.sink = req.sink.with(|chunk| {
        Ok(Some(match chunk {
            Chunk::Text { index, delta } => Chunk::Text { index, delta: delta.to_uppercase() },
            other => other,
        }))
    });
    let response = of(&models).build().expect("builds").call(req).await.expect("an answer");
    assert_eq!(response.message.text(), "TWO");
}

#[tokio::test]
async fn a_conversation_that_is_too_long_passes_over_windows_that_are_as_small() {
    let sized = |name: &str, window: u64, turns: Vec<Turn>| {
        ScriptedModel::new(turns).with_info(ModelInfo::new(name).with_context_window(window))
    };
    let overflows = || vec![fails(ErrorKind::ContextOverflow)];
    let models = [
        sized("a", 8_000, overflows()),
        sized("as-small", 8_000, vec![]),
        sized("b", 32_000, vec![fails(ErrorKind::Overloaded)]),
        named("unknown", overflows()),
        sized("c", 100_000, vec![Turn::text("fits")]),
    ];
    of(&models).build().expect("builds").call(ask()).await.expect("an answer");
    assert_eq!(calls(&models), [1, 0, 1, 1, 1]);
    let models = [sized("a", 8_000, overflows()), sized("b", 4_000, vec![])];
    let error = of(&models).build().expect("builds").call(ask()).await.expect_err("none is larger");
    assert_eq!((error.kind(), error.context("attempts")), (ErrorKind::ContextOverflow, None));
}

#[tokio::test]
async fn a_cancelled_run_asks_nobody_else() {
    let models = [named("a", [fails(ErrorKind::Overloaded)]), named("b", [])];
    let req = ask();
    req.cx.cancellation().cancel();
    let error = of(&models).build().expect("builds").call(req).await.expect_err("cancelled");
    assert_eq!((error.kind(), calls(&models)), (ErrorKind::Cancelled, [1, 0]));
}

/// Two models that answer everything, apart from the first's failures.
fn pair(fails_first: usize) -> [ScriptedModel; 2] {
    let failing = (0..fails_first).map(|_| fails(ErrorKind::Overloaded));
    let well = || (0..9).map(|_| Turn::text("ok"));
    [named("a", failing.chain(well())), named("b", well())]
}

#[tokio::test]
async fn each_call_begins_with_the_first_model_unless_it_is_told_otherwise() {
    let models = pair(2);
    let failover = of(&models).build().expect("builds");
    let run = run([Message::user("hi")]);
    for expected in [[1, 1], [2, 2], [3, 2]] {
        failover.call(ModelRequest::new(run.cx().clone())).await.expect("an answer");
        assert_eq!(calls(&models), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn after_a_failover_all_runs_stay_with_the_fallback_for_a_time() {
    let models = pair(1);
    let failover = of(&models).sticky(Sticky::For(secs(60))).build().expect("builds");
    for (waited, expected) in [(0, [1, 1]), (30, [1, 2]), (29, [1, 3]), (1, [2, 3]), (0, [3, 3])] {
        advance(secs(waited)).await;
        failover.call(ask()).await.expect("an answer");
        assert_eq!(calls(&models), expected, "after {waited} s more");
    }
}

#[tokio::test(start_paused = true)]
async fn a_fallback_that_fails_gives_way_to_the_first() {
    let models = [
        named("a", [fails(ErrorKind::Overloaded), Turn::text("ok"), Turn::text("ok")]),
        named("b", [Turn::text("ok"), fails(ErrorKind::Overloaded)]),
        named("c", []),
    ];
    let failover = of(&models).sticky(Sticky::For(std::time::Duration::MAX)).build().expect("builds");
    for expected in [[1, 1, 0], [2, 2, 0], [3, 2, 0]] {
        failover.call(ask()).await.expect("an answer");
        assert_eq!(calls(&models), expected);
    }
}

#[tokio::test]
async fn a_run_stays_with_the_fallback_and_others_begin_with_the_first() {
    let models = pair(1);
    let failover = of(&models).sticky(Sticky::Run).build().expect("builds");
    let (one, other) = (run([Message::user("hi")]), run([Message::user("hi")]));
    for (of_run, expected) in [(&one, [1, 1]), (&other, [2, 1]), (&one, [2, 2]), (&one, [2, 3]), (&other, [3, 3])] {
        failover.call(ModelRequest::new(of_run.cx().clone())).await.expect("an answer");
        assert_eq!(calls(&models), expected);
    }
}

#[tokio::test]
async fn one_runs_long_conversation_moves_no_other_run() {
    for (sticky, same_run, other_run) in [(Sticky::For(secs(60)), 2, 3), (Sticky::Run, 1, 2)] {
        let turns = [fails(ErrorKind::ContextOverflow), Turn::text("ok"), Turn::text("ok")];
        let models = [named("a", turns), named("b", (0..3).map(|_| Turn::text("ok")))];
        let failover = of(&models).sticky(sticky).build().expect("builds");
        let long = run([Message::user("long")]);
        for _ in 0..2 {
            failover.call(ModelRequest::new(long.cx().clone())).await.expect("an answer");
        }
        assert_eq!(models[0].calls(), same_run, "{sticky:?}");
        failover.call(ask()).await.expect("an answer");
        assert_eq!(models[0].calls(), other_run, "{sticky:?}");
    }
}

#[test]
fn its_info_holds_for_all_of_them() {
    let info = |name: &str| ModelInfo::new(name).with_provider("acme");
    let mut short = info("b").with_context_window(8_000);
    short.max_output = Some(500);
    let infos = [info("a").with_context_window(32_000), short, info("c")];
    let models = infos.clone().map(|info| ScriptedModel::new([]).with_info(info));
    let mut expected = info("a").with_context_window(8_000);
    expected.max_output = Some(500);
    assert_eq!(of(&models).build().expect("builds").info(), expected);
    let without = [models[0].clone(), ScriptedModel::new([]).with_info(info("d").without_tools())];
    assert!(!of(&without).build().expect("builds").info().tools);
    assert_eq!(of(&models).info(info("mine")).build().expect("builds").info(), info("mine"));
}

#[test]
fn one_model_is_no_failover() {
    let error = of(&[named("a", [])]).build().expect_err("no fallback");
    assert!(error.kind() == ErrorKind::Config && error.message().contains("fallback("), "{error}");
}
