//! Unit tests of the projection.

use agent::{AssistantMessage, Block, Event, EventKind, ExitReason, Question, ToolOutput, Usage, model::Chunk};
use agent_server::ag_ui::{Ending, Projection, STATE};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{
    any_events::{ending, event, events},
    rules,
};

fn done() -> Ending {
    Ending::Finished { answer: "done".into(), reason: ExitReason::Text }
}

fn told(events: &[Event], ending: &Ending) -> Vec<Value> {
    let mut projection = Projection::new("t", "r");
    let mut told = projection.start();
    told.extend(events.iter().flat_map(|event| projection.event(event)));
    told.extend(projection.end(ending));
    told.iter().map(|event| serde_json::to_value(event).expect("JSON")).collect()
}

fn kinds(told: &[Value]) -> Vec<&str> {
    told.iter().map(|event| event["type"].as_str().expect("a type")).collect()
}

fn text(index: u32, delta: &str) -> EventKind {
    EventKind::Chunk(Chunk::Text { index, delta: delta.into() })
}

fn answered(blocks: Vec<Block>) -> EventKind {
    EventKind::ModelAnswered { step: 1, message: AssistantMessage::new(blocks), usage: Usage::new(7, 2) }
}

/// Returns the text that a front end shows, assembled from the events like its client does.
fn shown(told: &[Value]) -> String {
    let mut messages: Vec<(String, String)> = Vec::new();
    for event in told {
        let id = event["messageId"].as_str().unwrap_or_default();
        match event["type"].as_str() {
            Some("TEXT_MESSAGE_START") => messages.push((id.into(), String::new())),
            Some("TEXT_MESSAGE_CONTENT") => {
                let message = messages.iter_mut().rfind(|(known, _)| known == id).expect("it began");
                message.1 += event["delta"].as_str().expect("a text");
            }
            Some("MESSAGES_SNAPSHOT") => {
                let is_left =
                    |id: &str| event["messages"].as_array().is_some_and(|all| all.iter().any(|m| m["id"] == *id));
                messages.retain(|(id, _)| is_left(id));
            }
            _ => {}
        }
    }
    messages.into_iter().map(|(_, text)| text).collect::<Vec<_>>().join("|")
}

proptest! {
    #[test]
    fn whatever_happens_the_order_is_the_protocols(events in events(), ending in ending()) {
        let told = told(&events, &ending);
        prop_assert_eq!(rules::check(&told), Ok(()), "{:#?}", told);
    }

    #[test]
    fn a_stream_that_is_cut_anywhere_is_one_too(events in events(), from in 0..60_usize, to in 0..60_usize) {
        let (from, to) = (from.min(to).min(events.len()), from.max(to).min(events.len()));
        let told = told(&events[from..to], &Ending::Cancelled);
        prop_assert_eq!(rules::check(&told), Ok(()), "{:#?}", told);
    }

    #[test]
    fn what_is_shown_is_what_the_answer_is_in_the_end(
        pieces in prop::collection::vec((0..2_u32, "[ab]{0,3}"), 0..6),
        texts in prop::collection::vec("[ab]{1,4}", 0..3),
        restarts in any::<bool>(),
    ) {
        let mut events: Vec<_> = pieces.iter().map(|(index, delta)| text(*index, delta)).collect();
        if restarts {
            events.push(EventKind::Chunk(Chunk::Restart));
        }
        let answer: Vec<_> = texts.iter().map(Block::text).collect();
        let expected = AssistantMessage::new(answer.clone()).text();
        events.push(answered(answer));
        let events: Vec<_> = events.iter().map(|kind| event(0, kind)).collect();
        prop_assert_eq!(shown(&told(&events, &done())), expected);
    }
}

#[test]
fn an_answer_that_nobody_streamed_is_told_whole() {
    let events = [event(0, &answered(vec![Block::text("Hello."), Block::tool_call("c1", "f", "{}")]))];
    let told = told(&events, &done());
    assert_eq!(
        kinds(&told),
        [
            "RUN_STARTED",
            "TEXT_MESSAGE_START",
            "TEXT_MESSAGE_CONTENT",
            "TOOL_CALL_START",
            "TOOL_CALL_ARGS",
            "TOOL_CALL_END",
            "TEXT_MESSAGE_END",
            "RUN_FINISHED"
        ]
    );
    assert_eq!(told[3]["parentMessageId"], told[1]["messageId"]);
    assert_eq!(told[7]["usage"][0]["totalTokens"], 9);
}

#[test]
fn what_a_failed_attempt_said_is_taken_back() {
    let restart = EventKind::Chunk(Chunk::Restart);
    let events = [text(0, "Wro"), restart, text(0, "Ri"), text(0, "ght"), answered(vec![Block::text("Right")])];
    let told = told(&events.map(|kind| event(0, &kind)), &done());
    assert_eq!(shown(&told), "Right");
    let snapshot = told.iter().find(|event| event["type"] == "MESSAGES_SNAPSHOT").expect("it was taken back");
    assert_eq!(snapshot["messages"], json!([]));
}

#[test]
fn what_a_hook_made_of_the_answer_is_what_is_shown() {
    let events = [text(0, "Call 555-0199"), answered(vec![Block::text("Call [redacted]")])];
    assert_eq!(shown(&told(&events.map(|kind| event(0, &kind)), &done())), "Call [redacted]");
}

#[test]
fn calls_of_sub_agents_that_number_them_alike_are_told_apart() {
    let call = || answered(vec![Block::tool_call("c1", "f", "{}")]);
    let result = || EventKind::ToolAnswered { call_id: "c1".into(), name: "f".into(), output: ToolOutput::text("17") };
    let events = [
        event(0, &call()),
        event(1, &call()),
        event(2, &call()),
        event(1, &result()),
        event(2, &result()),
        event(0, &result()),
    ];
    let told = told(&events, &done());
    let of = |kind: &str| -> Vec<String> {
        let of_kind = told.iter().filter(|event| event["type"] == *kind);
        of_kind.map(|event| event["toolCallId"].as_str().expect("an id").to_owned()).collect()
    };
    let (mut began, mut answered) = (of("TOOL_CALL_START"), of("TOOL_CALL_RESULT"));
    began.sort();
    answered.sort();
    began.dedup();
    assert_eq!(began.len(), 3);
    assert_eq!(began, answered);
}

#[test]
fn the_state_is_told_whole_and_then_by_what_is_different() {
    let state = |value: Value| event(0, &EventKind::Custom { name: STATE.into(), value });
    let events = [state(json!({"n": 1, "m": []})), state(json!({"n": 1, "m": []})), state(json!({"n": 2, "m": ["x"]}))];
    let told = told(&events, &done());
    assert_eq!(kinds(&told), ["RUN_STARTED", "STATE_SNAPSHOT", "STATE_DELTA", "RUN_FINISHED"]);
    let mut shown = told[1]["snapshot"].clone();
    let patch: json_patch::Patch = serde_json::from_value(told[2]["delta"].clone()).expect("a patch");
    json_patch::patch(&mut shown, &patch).expect("it applies");
    assert_eq!(shown, json!({"n": 2, "m": ["x"]}));
}

#[test]
fn calls_of_the_front_ends_own_tools_are_left_open_and_questions_are_asked() {
    let call = event(0, &answered(vec![Block::tool_call("c1", "f", "{}"), Block::tool_call("c2", "g", "{}")]));
    let mut approval = Question::new("c2/approval", "approval", json!({"tool": "g"}));
    approval.digest = "run.attempt.hash".into();
    approval.schema = Some(Box::new(json!({"type": "object"})));
    approval.expires = Some(4_102_444_800_000);
    let own = Question::new("c1/client_tool", "client_tool", json!({}));

    let told_own = told(std::slice::from_ref(&call), &Ending::Interrupted(vec![own.clone()]));
    let outcome = &told_own.last().expect("an end")["outcome"];
    assert_eq!(*outcome, json!({"type": "success", "pendingToolCallIds": ["c1"]}));

    let told_both = told(&[call], &Ending::Interrupted(vec![own, approval]));
    let outcome = &told_both.last().expect("an end")["outcome"];
    let interrupt = json!({
        "id": "run.attempt.hash", "reason": "approval", "toolCallId": "c2", "responseSchema": {"type": "object"},
        "expiresAt": "2100-01-01T00:00:00Z", "metadata": {"question": {"tool": "g"}},
    });
    assert_eq!(*outcome, json!({"type": "interrupt", "interrupts": [interrupt]}));
}
