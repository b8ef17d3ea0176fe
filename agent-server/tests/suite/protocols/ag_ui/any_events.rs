//! Arbitrary events in arbitrary order, including sequences that no run produces.

use std::sync::Arc;

use agent::{
    AssistantMessage, Block, Event, EventKind, ExitReason, Message, Question, ToolOutput, Usage, journal::RunStatus,
    message::Reasoning, model::Chunk,
};
use agent_server::ag_ui::{Ending, STATE};
use proptest::prelude::*;
use serde_json::{Value, json};

/// The root run, two concurrent sub-agents, and one below the first of them.
const RUNS: [(&str, Option<&str>, u32); 4] =
    [("root", None, 0), ("left", Some("root"), 1), ("right", Some("root"), 1), ("deep", Some("left"), 2)];

/// Returns an event of this kind, of the run with the index `who`.
pub(super) fn event(who: usize, kind: &EventKind) -> Event {
    let (run, above, depth) = RUNS[who];
    let mut ids = json!({"agent": run, "agent_id": run, "run_id": run, "root_run_id": "root", "path": run, "session": "s", "depth": depth});
    if let Some(above) = above {
        ids["parent_run_id"] = above.into();
    }
    let event = json!({"position": {"seq": 1, "after": 0}, "ids": ids, "kind": kind});
    serde_json::from_value(event).expect("an event")
}

pub(super) fn events() -> impl Strategy<Value = Vec<Event>> {
    let one = (0..RUNS.len(), kind()).prop_map(|(who, kind)| event(who, &kind));
    prop::collection::vec(one, 0..60)
}

pub(super) fn ending() -> impl Strategy<Value = Ending> {
    let question = |kind: &'static str| Question::new("c0/q", kind, json!({}));
    prop_oneof![
        Just(Ending::Finished { answer: "done".into(), reason: ExitReason::Text }),
        Just(Ending::Interrupted(vec![question("approval")])),
        Just(Ending::Interrupted(vec![question("client_tool")])),
        Just(Ending::Interrupted(vec![question("client_tool"), question("approval")])),
        Just(Ending::Paused),
        Just(Ending::Cancelled),
    ]
}

fn call_id() -> impl Strategy<Value = Arc<str>> {
    (0..3).prop_map(|n| Arc::from(format!("c{n}")))
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![Just(String::new()), Just("a".to_owned()), Just("ü b".to_owned())]
}

fn block() -> impl Strategy<Value = Block> {
    prop_oneof![
        text().prop_map(Block::text),
        (text(), any::<bool>()).prop_map(|(text, is_sealed)| {
            Block::Reasoning(Reasoning {
                text,
                encrypted: is_sealed.then(|| "sealed".to_owned()),
                ..Reasoning::default()
            })
        }),
        (call_id(), text()).prop_map(|(id, arguments)| Block::tool_call(id, "f", arguments)),
    ]
}

fn chunk() -> impl Strategy<Value = Chunk> {
    let index = 0..3_u32;
    prop_oneof![
        3 => (index.clone(), text()).prop_map(|(index, delta)| Chunk::Text { index, delta }),
        2 => (index.clone(), text()).prop_map(|(index, delta)| Chunk::Reasoning { index, delta }),
        2 => (index.clone(), call_id()).prop_map(|(index, id)| Chunk::ToolCall { index, id, name: "f".into() }),
        2 => (index.clone(), text()).prop_map(|(index, delta)| Chunk::Arguments { index, delta }),
        1 => (index.clone(), block()).prop_map(|(index, block)| Chunk::Block { index, block }),
        2 => index.prop_map(|index| Chunk::End { index }),
        1 => Just(Chunk::Restart),
    ]
}

fn kind() -> impl Strategy<Value = EventKind> {
    let answered = |blocks: Vec<Block>| EventKind::ModelAnswered {
        step: 1,
        message: AssistantMessage::new(blocks),
        usage: Usage::new(1, 1),
    };
    let ended = |status| EventKind::RunEnded { status, usage: Usage::default(), error: None };
    prop_oneof![
        1 => Just(EventKind::RunStarted),
        1 => Just(EventKind::RunResumed),
        2 => (1..4_u32).prop_map(|step| EventKind::StepStarted { step }),
        12 => chunk().prop_map(EventKind::Chunk),
        3 => prop::collection::vec(block(), 0..4).prop_map(answered),
        2 => call_id().prop_map(|call_id| EventKind::ToolAnswered {
            call_id, name: "f".into(), output: ToolOutput::text("17"),
        }),
        1 => call_id().prop_map(|call_id| EventKind::ToolProgress { call_id, progress: json!({"percent": 3}) }),
        1 => (call_id(), 1..RUNS.len()).prop_map(|(call_id, who)| EventKind::SubAgentStarted {
            call_id, key: "k".into(), run: RUNS[who].0.into(),
        }),
        1 => Just(EventKind::Asked(Question::new("c0/approval", "approval", json!({})))),
        1 => Just(EventKind::Message(Message::user("more"))),
        1 => any::<bool>().prop_map(|value| EventKind::Custom { name: STATE.into(), value: json!({"done": value}) }),
        1 => Just(EventKind::Custom { name: "mine".into(), value: Value::Null }),
        1 => Just(EventKind::Warning { message: "careful".into() }),
        1 => prop_oneof![
            Just(RunStatus::Finished(ExitReason::Text)),
            Just(RunStatus::Interrupted),
            Just(RunStatus::Paused),
            Just(RunStatus::Cancelled),
            Just(RunStatus::Failed),
        ].prop_map(ended),
    ]
}
