//! Readers that lost their connection, and reconnect with the position of their last event.

use std::sync::Arc;

use agent_core::{
    Event, EventKind, Journal, MemoryJournal, RunRequest,
    engine::EventHub,
    event::Position,
    testing::{ScriptedModel, Turn},
};
use agent_exec::Agent;
use futures::StreamExt;
use serde_json::json;

use crate::common::double;

/// Builds an agent whose runs have chunks, calls and results.
fn agent(journal: &MemoryJournal) -> Agent {
    let model = ScriptedModel::new([
        Turn::text("I look it up.").and_call("c1", "look", json!({"x": 3})),
        Turn::text("It is one two three."),
    ]);
    Agent::builder("a", model).tool(double("look")).store(journal.clone()).streaming(true).build().expect("an agent")
}

fn place(events: &[Event], have: usize) -> Position {
    have.checked_sub(1).map_or_else(Position::default, |last| events[last].position)
}

#[tokio::test]
async fn whoever_comes_back_gets_what_he_has_not_once_and_in_order_with_what_passed() {
    let journal = MemoryJournal::default();
    let run = agent(&journal).start(RunRequest::user("Look it up.").session("s"));
    let handle = run.handle();
    let _kept = handle.events();
    let reader = handle.events();
    let ids = run.await.expect("it finishes").finished().expect("it finishes").ids;
    let all: Vec<Event> = reader.collect().await;
    assert!(all.iter().any(|event| matches!(event.kind, EventKind::Chunk(_))));
    for have in 0..=all.len() {
        let rest: Vec<Event> = handle.events_after(1, place(&all, have)).collect().await;
        assert_eq!(rest, all[have..], "after {have} of {}", all.len());
    }

    // The same from the journal alone, without transient events.
    let durable: Vec<Event> = all.into_iter().filter(|event| event.position.after == 0).collect();
    let newest = journal.newest("s").await.expect("a journal").expect("an entry").seq;
    let hub = EventHub::at_rest(Arc::new(journal), &Arc::new(ids), 1, newest);
    for have in 0..=durable.len() {
        let rest: Vec<Event> = hub.subscribe_after(1, place(&durable, have)).collect().await;
        assert_eq!(rest, durable[have..], "after {have} of {}", durable.len());
    }
}

#[tokio::test]
async fn a_reader_of_a_run_that_goes_on_has_its_earlier_attempts_too() {
    let journal = MemoryJournal::default();
    let agent = agent(&journal);
    let run = agent.start(RunRequest::user("Look it up.").session("s"));
    run.handle().pause();
    assert_eq!(run.await.expect("it pauses").as_str(), "paused");
    let run = agent.start(RunRequest::recover("s", []));
    let handle = run.handle();
    let _kept = handle.events();
    assert_eq!(run.await.expect("it finishes").as_str(), "finished");

    let all: Vec<Event> = handle.events_after(1, Position::default()).collect().await;
    assert!(all.is_sorted_by(|one, two| one.position < two.position));
    assert!(matches!(all[0].kind, EventKind::RunStarted));
    let ends = all.iter().filter(|event| matches!(event.kind, EventKind::RunEnded { .. })).count();
    assert_eq!(ends, 2, "that of the pause, and the last");
    for have in 0..=all.len() {
        let rest: Vec<Event> = handle.events_after(1, place(&all, have)).collect().await;
        assert_eq!(rest, all[have..]);
    }
}
