//! Sample entries.

use std::{collections::BTreeMap, sync::Arc};

use agent_core::{
    AssistantMessage, Block, Effect, Exit, ExitReason, History, Media, Message, ModelResponse, Part, Question, RunIds,
    ToolOutput, Usage, UserMessage,
    budget::Amounts,
    journal::{Anchor, Entry, EntryBody, RunStatus, SessionIndex},
    message::{Origin, Raw, Reasoning, ServerCall},
    run::checkpoint::{ChildRun, RunState},
};
use serde_json::{Value, json};

/// Returns an entry of `run` that is identified by its text.
pub(super) fn heard(run: &str, text: impl Into<String>) -> Entry {
    Entry::new(run.into(), 1_700_000_000_123, EntryBody::MessageAppended { message: Message::user(text) })
}

/// Returns the text of a [`heard`] entry.
pub(super) fn text(entry: &Entry) -> String {
    match &entry.body {
        EntryBody::MessageAppended { message } => message.text(),
        other => panic!("not a message: {other:?}"),
    }
}

/// JSON unlike any serialiser's output: spaces, unusual order, a trailing zero, unnecessary
/// escapes.
pub(super) const ODD_JSON: &str = "{\"z\" :1.50,\t\"a\":\"\\u00e9\\/\",\n \"big\": 123456789012345678901234567890 }";

/// An answer with every kind of block.
pub(super) fn full_answer() -> AssistantMessage {
    let raw = || Raw::parse(Origin::new("wire", "provider", "model"), ODD_JSON).expect("valid JSON");
    let reasoning = Reasoning {
        text: "hm".into(),
        signature: Some("s\"ig".into()),
        encrypted: Some("c2VjcmV0".into()),
        raw: Some(raw()),
    };
    let mut searched = ServerCall::new("s1", "web_search", raw());
    (searched.server, searched.input) = (Some("wiki".into()), Some("{\"q\": 1}".into()));
    (searched.output, searched.failed) = (Some("\u{0}none".into()), true);
    let blocks = vec![
        Block::text("こんにちは \u{0}\u{1f600}\u{200f}\n\t\"\\"),
        Block::Reasoning(reasoning),
        Block::tool_call("c1", "search", "{\"q\": \"not valid"),
        Block::Image(Media::base64("aGk=", "image/png")),
        Block::Document(Media::url("https://example.org/a.pdf")),
        Block::Server(searched),
        Block::Other(raw()),
    ];
    AssistantMessage::from_provider(blocks, raw())
}

/// Returns one run of `agent` with an entry of every kind.
///
/// # Panics
/// Never: the samples are valid.
pub fn every_kind(session: &str, agent: &str) -> Vec<Entry> {
    let ids = Arc::new(RunIds::root(agent, session));
    let call_id: Arc<str> = "c1".into();
    let name: Arc<str> = "search".into();
    let output = ToolOutput::value(json!({"status": "ok", "output": "3 hits", "n": [1, -2, 3.25, null, true]}));
    let parts = vec![Part::text("look"), Part::Image(Media::base64("aGk=", "image/png"))];
    let mut history = History::default();
    history.push(Message::system("summary")).expect("a system message is no call");
    let anchor = anchor(session, agent);
    let bodies = vec![
        EntryBody::RunStarted { ids: ids.clone(), fingerprint: "f".into() },
        EntryBody::RunResumed { ids: ids.clone(), attempt: "a".into() },
        EntryBody::HistoryReplaced { reason: "compact_auto".into(), before: 12, history },
        EntryBody::Imported { state: Box::new(RunState::new((*ids).clone(), "f")) },
        EntryBody::ExitDeclined {},
        EntryBody::StopRequested { reason: "order placed".into() },
        EntryBody::MessageAppended { message: Message::User(UserMessage::new(parts)) },
        EntryBody::BudgetReserved { call: 0, amounts: Amounts::none().tokens(100) },
        EntryBody::ModelFinished {
            step: 1,
            response: std::sync::Arc::new(ModelResponse::new(full_answer()).with_usage(Usage::new(7, 2))),
        },
        EntryBody::BudgetSettled { call: 0, amounts: Amounts::none().tokens(9) },
        EntryBody::SideModelFinished { usage: Usage::new(30, 3).into() },
        EntryBody::ModelAccepted { step: 1, message: None, exit: Some(Exit::new(ExitReason::Text, "done").into()) },
        EntryBody::ToolSuspended { call_id: call_id.clone() },
        EntryBody::ToolStarted {
            call_id: call_id.clone(),
            name: name.clone(),
            effect: Effect::Idempotent,
            attempt: "a".into(),
        },
        EntryBody::SubAgentLinked {
            call_id: call_id.clone(),
            hook: Some("after_tool-0".into()),
            n: 2,
            place: Some("c1/after_tool-0/k/2".into()),
            key: "k".into(),
            run: "r2".into(),
            background: true,
        },
        EntryBody::SubAgentReported { run: "r2".into(), message: Some(Message::user("It is done.")) },
        EntryBody::Asked { question: Question::new("c1/approval", "approval", json!({"why": "§"})).into() },
        EntryBody::Answered {
            id: "c1/approval".into(),
            answer: json!(true),
            by: Some("ann".into()),
            digest: "r.a.0".into(),
        },
        EntryBody::Decided { name: "pick".into(), value: json!({"b": 1, "a": [[]]}), beginning: true },
        EntryBody::ToolFinished { call_id: call_id.clone(), output: output.clone() },
        EntryBody::ToolAnswered { call_id: call_id.clone(), name, output: Some(output.failed()) },
        EntryBody::StateChanged {
            state: BTreeMap::from([("s".into(), json!("v"))]),
            globals: BTreeMap::from([("set".into(), Some(json!({"x": 1}))), ("removed".into(), None)]),
        },
        EntryBody::TurnEnded { step: 1, changed: BTreeMap::from([(call_id, ToolOutput::error("no"))]), exit: None },
        EntryBody::Undone { before_run: "r0".into() },
        EntryBody::Steered { message: Message::user("and be brief") },
        EntryBody::Titled { title: "A § title".into() },
        EntryBody::Anchored { anchor: Box::new(anchor) },
        EntryBody::Unknown(json!({"from_the_future": {"x": [1, "two"]}})),
        EntryBody::RunEnded {
            status: RunStatus::Finished(ExitReason::Tool("done".into())),
            usage: Usage::new(7, 2).into(),
            error: Some("e".into()),
            answer: Some("a".into()),
        },
    ];
    (1..).zip(bodies).map(|(time, body)| Entry::new(ids.run_id.clone(), time, body)).collect()
}

/// Returns a snapshot of another session, one of whose agents has a run in progress.
fn anchor(session: &str, agent: &str) -> Anchor {
    let ids = Arc::new(RunIds::root(agent, session));
    let run = ids.run_id.clone();
    let status = RunStatus::Finished(ExitReason::Text);
    let bodies = [
        EntryBody::RunStarted { ids, fingerprint: "f".into() },
        EntryBody::MessageAppended { message: Message::user("remember \u{0} this") },
        EntryBody::StateChanged { state: BTreeMap::new(), globals: [("x".into(), Some(json!(1.5)))].into() },
        EntryBody::RunEnded { status, usage: Usage::new(7, 2).into(), error: None, answer: None },
    ];
    let open = Arc::new(RunIds::root(format!("{agent}'s neighbour"), session));
    let left = open.run_id.clone();
    let calls = AssistantMessage::new(vec![Block::tool_call("c1", "search", "{}")]);
    let left_open = [
        EntryBody::RunStarted { ids: open, fingerprint: "f".into() },
        EntryBody::ModelAccepted { step: 1, message: Some(calls), exit: None },
        EntryBody::BudgetReserved { call: 7, amounts: Amounts::none().tokens(9) },
        EntryBody::linked(ChildRun::new("c1".into(), "k", "below".into())),
        EntryBody::RunEnded { status: RunStatus::Failed, usage: Usage::new(1, 1).into(), error: None, answer: None },
    ];
    let entries = bodies.map(|body| (&run, body)).into_iter().chain(left_open.map(|body| (&left, body)));
    let mut index = SessionIndex::default();
    for (seq, (run, body)) in (1..).zip(entries) {
        let mut entry = Entry::new(run.clone(), seq, body);
        entry.seq = seq;
        index.apply(&entry);
    }
    index.anchor(1).expect("can be read back")
}

/// Returns numbers whose last bit is easily lost, and the limits of the ranges.
pub(super) fn numbers() -> Value {
    let fractions: Vec<_> = (1..500).map(|n| f64::from(n).sqrt().exp()).collect();
    json!({"fractions": fractions, "ends": [5e-324, f64::MAX, -0.0, u64::MAX, i64::MIN]})
}
