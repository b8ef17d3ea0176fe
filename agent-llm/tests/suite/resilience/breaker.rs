//! Circuit breaker.

use agent_core::{ErrorKind, EventKind, Model, ModelInfo, Retry, event::CircuitState};
use agent_llm::{CircuitBreaker, Failover, LayeredModel, ScriptedModel, Turn, breaker::BreakerLayer};
use tokio::time::{Instant, advance, timeout};

use super::{common::ask, fails, observed, secs};

const KEY: &str = "acme/m";

fn around(turns: impl IntoIterator<Item = Turn>, layer: BreakerLayer) -> (ScriptedModel, LayeredModel) {
    let model = ScriptedModel::new(turns);
    (model.clone(), LayeredModel::new(model, layer))
}

/// Returns the error kinds of the next calls, `None` for an answer.
async fn outcomes(model: &impl Model, calls: usize) -> Vec<Option<ErrorKind>> {
    let mut kinds = Vec::new();
    for _ in 0..calls {
        kinds.push(model.call(ask()).await.err().map(|e| e.kind()));
    }
    kinds
}

const DOWN: ErrorKind = ErrorKind::Provider;

#[tokio::test(start_paused = true)]
async fn after_three_failures_in_a_row_calls_are_refused_at_once_with_the_remaining_delay() {
    let breaker = CircuitBreaker::new();
    let (model, guarded) = around((0..3).map(|_| fails(DOWN)), breaker.layer(KEY));
    assert_eq!(outcomes(&guarded, 3).await, [Some(DOWN); 3]);
    assert_eq!(breaker.state(KEY), CircuitState::Open);
    advance(secs(20)).await;
    let error = guarded.call(ask()).await.expect_err("open");
    assert_eq!((error.kind(), error.retry()), (ErrorKind::Overloaded, Retry::Temporary(Some(secs(40)))));
    assert_eq!(error.context("circuit"), Some(KEY));
    let said = "'acme/m' failed several times in a row (provider): it is left alone for 40 s more";
    assert_eq!((error.message(), model.calls()), (said, 3));
}

#[tokio::test(start_paused = true)]
async fn when_the_time_is_over_one_probe_decides() {
    let breaker = CircuitBreaker::new().failures(1).open_for(secs(10));
    let turns = [fails(DOWN), fails(DOWN).delay(secs(1)), Turn::text("ok").delay(secs(1)), Turn::text("ok")];
    let (model, guarded) = around(turns, breaker.layer(KEY));
    assert_eq!(outcomes(&guarded, 1).await, [Some(DOWN)]);
    advance(secs(10)).await;
    assert_eq!(breaker.state(KEY), CircuitState::HalfOpen);
    let (probe, other) = tokio::join!(guarded.call(ask()), guarded.call(ask()));
    assert_eq!(probe.expect_err("still down").kind(), DOWN);
    let other = other.expect_err("there is one probe");
    assert_eq!((other.kind(), other.retry()), (ErrorKind::Overloaded, Retry::Temporary(None)));
    assert_eq!((model.calls(), breaker.state(KEY)), (2, CircuitState::Open), "the probe failed: all over again");
    assert_eq!(outcomes(&guarded, 1).await, [Some(ErrorKind::Overloaded)]);
    advance(secs(10)).await;
    assert_eq!(outcomes(&guarded, 2).await, [None, None]);
    assert_eq!(breaker.state(KEY), CircuitState::Closed);
    model.assert_finished();
}

#[tokio::test(start_paused = true)]
async fn every_change_is_announced_by_the_run_that_caused_it() {
    let layer = CircuitBreaker::new().failures(1).open_for(secs(10)).layer(KEY);
    let (_, guarded) = around([fails(DOWN), Turn::text("ok")], layer);
    let (_run, req, reports) = observed();
    guarded.call(req.clone()).await.expect_err("down");
    advance(secs(10)).await;
    guarded.call(req).await.expect("an answer");
    let changed = |state| EventKind::Circuit { key: KEY.into(), state };
    let all = [CircuitState::Open, CircuitState::HalfOpen, CircuitState::Closed];
    assert_eq!(reports.seen(), all.map(changed));
}

#[tokio::test(start_paused = true)]
async fn an_answer_breaks_the_row_and_what_says_nothing_of_the_models_health_does_not_count() {
    let breaker = CircuitBreaker::new().failures(2);
    let bad = || fails(ErrorKind::InvalidRequest);
    let turns = [fails(DOWN), Turn::text("ok"), fails(DOWN), bad(), bad(), fails(DOWN)];
    let (_, guarded) = around(turns, breaker.layer(KEY));
    outcomes(&guarded, 5).await;
    assert_eq!(breaker.state(KEY), CircuitState::Closed);
    outcomes(&guarded, 1).await;
    assert_eq!(breaker.state(KEY), CircuitState::Open);
}

#[tokio::test(start_paused = true)]
async fn the_kinds_that_count_can_be_chosen() {
    let breaker = CircuitBreaker::new().failures(1).on([ErrorKind::Quota]).never([DOWN]);
    let (_, guarded) = around([fails(DOWN), fails(ErrorKind::Quota)], breaker.layer(KEY));
    outcomes(&guarded, 1).await;
    assert_eq!(breaker.state(KEY), CircuitState::Closed);
    outcomes(&guarded, 1).await;
    assert_eq!(breaker.state(KEY), CircuitState::Open);
}

#[tokio::test(start_paused = true)]
async fn a_key_has_one_circuit_and_another_key_its_own() {
    let breaker = CircuitBreaker::new().failures(2);
    let info = ModelInfo::new("m").with_provider("acme");
    let (one, first) = around([fails(DOWN)], breaker.layer_for(&info));
    let (two, second) = around([fails(DOWN)], breaker.clone().layer(KEY));
    let (other, third) = around([Turn::text("ok")], breaker.layer("acme/other"));
    outcomes(&first, 1).await;
    outcomes(&second, 1).await;
    let refused = Some(ErrorKind::Overloaded);
    assert_eq!([outcomes(&first, 1).await, outcomes(&second, 1).await], [[refused], [refused]]);
    assert_eq!(outcomes(&third, 1).await, [None]);
    assert_eq!([&one, &two, &other].map(ScriptedModel::calls), [1, 1, 1]);
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_is_dropped_leaves_it_to_the_next_call() {
    let breaker = CircuitBreaker::new().failures(1).open_for(secs(10));
    let (_, guarded) = around([fails(DOWN), Turn::text("slow").delay(secs(60)), Turn::text("ok")], breaker.layer(KEY));
    outcomes(&guarded, 1).await;
    advance(secs(10)).await;
    timeout(secs(5), guarded.call(ask())).await.expect_err("it takes a minute");
    assert_eq!(breaker.state(KEY), CircuitState::HalfOpen);
    assert_eq!(outcomes(&guarded, 1).await, [None]);
}

#[tokio::test(start_paused = true)]
async fn a_failover_outside_moves_on_at_once() {
    let breaker = CircuitBreaker::new().failures(1);
    let (down, guarded) = around([fails(DOWN).delay(secs(30))], breaker.layer(KEY));
    let model = Failover::builder(guarded).fallback(ScriptedModel::new([Turn::text("1"), Turn::text("2")])).build();
    let model = model.expect("builds");
    let mut waited = Vec::new();
    for _ in 0..2 {
        let began = Instant::now();
        model.call(ask()).await.expect("the other answers");
        waited.push(began.elapsed().as_secs());
    }
    assert_eq!((waited, down.calls()), (vec![30, 0], 1));
}
