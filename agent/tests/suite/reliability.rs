//! Reliable models in whole runs: their journal, their budget, their end.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use agent::{
    Budget, Caps, Finished,
    core::{Journal, MemoryJournal, journal::EntryBody},
    llm::{Failover, HedgeLayer, LayeredModel, RetryLayer, failover::Sticky},
    middleware::Events,
    prelude::*,
    testing::{ScriptedModel, Turn},
};
use serde_json::json;
use tokio::time::Instant;

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

fn fails(kind: ErrorKind) -> Turn {
    Turn::error(move || Error::new(kind, "why").with_retry(agent::Retry::Temporary(None)))
}

fn finished(end: Result<RunEnd>) -> Finished {
    end.expect("the run does not fail").finished().expect("the run finishes")
}

/// Says what time it is.
#[tool(effect = "pure", crate = "agent::tools")]
async fn clock() -> Result<String> {
    Ok("noon".into())
}

#[tokio::test(start_paused = true)]
async fn only_answers_are_kept_however_many_attempts_they_took() {
    for inside in [false, true] {
        let journal = MemoryJournal::default();
        let turns = [fails(ErrorKind::Provider), Turn::call("c1", "clock", json!({})), fails(ErrorKind::Timeout)];
        let model = ScriptedModel::new(turns.into_iter().chain([fails(ErrorKind::Provider), Turn::text("noon")]));
        let builder = match inside {
            true => Agent::builder("a", LayeredModel::new(model.clone(), RetryLayer::new())),
            false => Agent::builder("a", model.clone()).model_layer(RetryLayer::new()),
        };
        let agent = builder.tool(clock).store(journal.clone()).build().expect("builds");
        finished(agent.start(RunRequest::user("What time is it?").session("s")).await);
        let entries = journal.read("s", 0, usize::MAX).await.expect("reads");
        let steps: Vec<_> = entries
            .iter()
            .filter_map(|entry| match entry.body {
                EntryBody::ModelFinished { step, .. } => Some(step),
                _ => None,
            })
            .collect();
        assert_eq!((steps, model.calls()), (vec![1, 2], 5), "inside the call: {inside}");
    }
}

#[tokio::test]
async fn a_model_that_fails_in_the_middle_of_a_run_is_replaced_with_the_tools_and_the_conversation_in_place() {
    let first = ScriptedModel::new([Turn::call("c1", "clock", json!({})), fails(ErrorKind::Quota)]);
    let second = ScriptedModel::new([Turn::call("c2", "clock", json!({})), Turn::text("Still noon.")]);
    let model = Failover::builder(first.clone()).fallback(second.clone()).sticky(Sticky::Run).build();
    let moves = Arc::new(Mutex::new(0));
    let seen = moves.clone();
    let events = Events::new().on(move |event| {
        *seen.lock().expect("lock") += u32::from(matches!(event.kind, EventKind::Failover { .. }));
    });
    let agent = Agent::builder("a", model.expect("builds")).tool(clock).middleware(events).build().expect("builds");
    let end = finished(agent.run("What time is it?").await);
    assert_eq!((end.answer.as_str(), first.calls(), second.calls()), ("Still noon.", 2, 2));
    let asked = &second.requests()[0];
    assert_eq!((asked.results(), &asked.tools[..]), (vec![("c1".into(), "noon".into())], &["clock".to_owned()][..]));
    assert_eq!(*moves.lock().expect("lock"), 1, "the run stays with the second");
}

#[tokio::test(start_paused = true)]
async fn a_call_is_made_a_second_time_only_if_the_budget_allows_it() {
    for (allowed, made, answer) in [(1, 1, "first"), (2, 2, "second")] {
        let mut caps = Caps::default();
        caps.model_calls = Some(allowed);
        let budget = Budget::new(caps);
        let slow = |text: &str, pause| Turn::text(text).delay(secs(pause));
        let model = ScriptedModel::new([slow("first", 20), slow("second", 1)]);
        let hedged = LayeredModel::new(model.clone(), HedgeLayer::after(secs(5)));
        let agent = Agent::builder("a", hedged).budget(budget.clone()).build().expect("builds");
        let end = finished(agent.run("hi").await);
        assert_eq!((end.answer.as_str(), model.calls()), (answer, made));
        let balance = budget.balance().await.expect("in memory");
        assert_eq!((balance.settled.model_calls, balance.reserved.model_calls), (allowed, 0));
        assert_eq!(end.usage.calls, 1, "what the dropped call used is unknown");
    }
}

#[tokio::test(start_paused = true)]
async fn cancelling_a_run_ends_a_wait_inside_its_model_at_once() {
    let limited = || Error::new(ErrorKind::RateLimited, "why").with_retry(agent::Retry::Temporary(Some(secs(20))));
    let model = ScriptedModel::new([Turn::error(limited)]);
    let other = ScriptedModel::new([]);
    let failover = Failover::builder(LayeredModel::new(model.clone(), RetryLayer::new())).fallback(other.clone());
    let agent = Agent::builder("a", failover.build().expect("builds")).build().expect("builds");
    let run = agent.start(RunRequest::user("hi"));
    let (handle, began) = (run.handle(), Instant::now());
    let (end, ()) = tokio::join!(run, async {
        tokio::time::sleep(secs(3)).await;
        handle.cancel();
    });
    assert!(matches!(end, Ok(RunEnd::Cancelled(_))));
    assert_eq!((began.elapsed(), model.calls(), other.calls()), (secs(3), 1, 0));
}
