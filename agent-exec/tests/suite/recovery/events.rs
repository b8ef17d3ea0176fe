//! Subscribers of a resuming process receive the events that the dead process recorded but did not
//! deliver.

use agent_core::{
    AssistantMessage, Block, Effect, Event, EventKind, Journal, MemoryJournal, RunRequest,
    testing::{MortalJournal, ScriptedModel, Turn},
};
use agent_exec::{Agent, Run};
use agent_tools::{ToolExt, from_schema};
use futures::StreamExt;
use serde_json::{Value, json};

use super::world::SESSION;

fn agent(store: impl Journal, steps_done: usize) -> Agent {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    let double = from_schema("double", "Doubles.", schema, |args: Value, _| async move {
        tokio::task::yield_now().await;
        Ok::<_, std::convert::Infallible>(json!(args["n"].as_i64().unwrap_or(0) * 2))
    });
    let call = |id, n| Block::tool_call(id, "double", json!({ "n": n }).to_string());
    let asks = AssistantMessage::new(vec![call("a", 1), call("b", 2), call("c", 3)]);
    let turns = [Turn::message(asks), Turn::text("2, 4 and 6")].into_iter().skip(steps_done);
    let double = double.with_options(|options| options.effect(Effect::Pure));
    Agent::builder("a", ScriptedModel::new(turns)).tool(double).store(store).build().expect("builds")
}

/// Returns the answers among the events of a run until it ends or its process dies.
async fn heard(mut run: Run, died: impl Future<Output = ()>) -> Vec<String> {
    let mut answers = Vec::new();
    tokio::pin!(died);
    loop {
        let event = tokio::select! {
            biased;
            event = run.next() => event,
            () = &mut died => None,
        };
        match event {
            Some(Event { kind: EventKind::ToolAnswered { call_id, output, .. }, .. }) => {
                answers.push(format!("{call_id}: {}", output.to_text()));
            }
            Some(Event { kind: EventKind::ModelAnswered { message, .. }, .. }) => {
                answers.push(format!("{} calls, {}", message.calls().count(), message.text()));
            }
            Some(_) => {}
            None => return answers,
        }
    }
}

/// Concurrent calls are answered in any order.
fn sorted(mut answers: Vec<String>) -> Vec<String> {
    answers.sort();
    answers
}

#[tokio::test(start_paused = true)]
async fn every_answer_is_told_once_by_one_process_or_the_other() {
    let go = || RunRequest::user("go").session(SESSION);
    let journal = MemoryJournal::default();
    let whole = sorted(heard(agent(journal.clone(), 0).start(go()), std::future::pending()).await);
    assert_eq!(whole, ["0 calls, 2, 4 and 6", "3 calls, ", "a: 2", "b: 4", "c: 6"]);
    let entries = journal.read(SESSION, 0, usize::MAX).await.expect("reads").len() as u64;
    for dies_at in 1..=entries {
        let journal = MemoryJournal::default();
        let mortal = MortalJournal::new(journal.clone()).dying_at(dies_at);
        let mut told = heard(agent(mortal.clone(), 0).start(go()), mortal.died()).await;
        tokio::time::sleep(std::time::Duration::from_millis(1)).await; // its aborted tasks are gone
        let kept = journal.read(SESSION, 0, usize::MAX).await.expect("reads");
        let answered =
            kept.iter().filter(|entry| matches!(entry.body, agent_core::journal::EntryBody::ModelFinished { .. }));
        let rest = agent(journal.clone(), answered.count());
        let goes_on = if kept.is_empty() { go() } else { RunRequest::recover(SESSION, []) };
        told.extend(heard(rest.start(goes_on), std::future::pending()).await);
        assert_eq!(sorted(told), whole, "died at {dies_at} of {entries}");
    }
}
