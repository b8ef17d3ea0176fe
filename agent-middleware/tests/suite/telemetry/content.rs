//! Captured content, and content that is never captured.

use agent_core::{
    AssistantMessage, Block, Media, Message, Part, RunRequest, UserMessage,
    testing::{ScriptedModel, Turn},
};
use agent_exec::Agent;
use agent_middleware::{
    ContextCompaction, Telemetry,
    compaction::{Keep, Summary, Trigger},
    telemetry::{Capture, TelemetryConfig},
};
use opentelemetry::logs::Severity;
use serde_json::{Value, json};

use super::{
    recorder::{Recorder, Spans, attribute, fields, names, number, severity},
    world::{Named, broken, finished, lookup},
};

const SECRET: &str = "hunter2";

/// Runs an agent with the secret everywhere: prompt, system prompt, arguments, result, answer, an
/// error's text.
async fn run_with_secrets(telemetry: Telemetry) {
    let calls = [("c1", "lookup", json!({"key": SECRET, SECRET: [42]})), ("c2", "broken", json!({"at": SECRET}))];
    let answer = AssistantMessage::new(vec![Block::reasoning(SECRET), Block::text(format!("It is {SECRET}."))]);
    let agent = Agent::builder("discreet", Named::new("discreet", [Turn::calls(calls), Turn::message(answer)]))
        .system(format!("The password is {SECRET}."))
        .tool(lookup())
        .tool(broken())
        .middleware(telemetry)
        .build()
        .expect("builds");
    finished(agent.run(format!("What is {SECRET}?")).await);
}

/// Returns everything that was exported, as text.
fn all(recorder: &Recorder) -> String {
    let events = recorder.events("gen_ai.client.inference.operation.details");
    format!("{:?} {:?}", recorder.spans().0, events)
}

#[tokio::test(start_paused = true)]
async fn no_content_is_captured_unless_asked_for() {
    let recorder = Recorder::start();
    run_with_secrets(Telemetry::new()).await;
    let all = all(&recorder);
    assert!(!all.contains(SECRET) && !all.contains("/secret"), "{all}");
    let content = ["messages", "instructions", "definitions", "arguments", "call.result"];
    let spans = recorder.spans();
    let captured = spans.0.iter().flat_map(names).find(|name| content.iter().any(|part| name.contains(part)));
    assert_eq!(captured, None);
}

#[tokio::test(start_paused = true)]
async fn whatever_is_captured_was_redacted_before() {
    for capture in [Capture::Spans, Capture::Events] {
        let recorder = Recorder::start();
        let redact =
            |text: String| text.replace(SECRET, "[gone]").replace("42", "[number]").replace("/secret", "[path]");
        run_with_secrets(Telemetry::new().capture(capture).redact(redact)).await;
        let all = all(&recorder);
        for secret in [SECRET, "42]", "/secret"] {
            assert!(!all.contains(secret), "{secret} in {all}");
        }
        assert!(all.contains("[gone]") && all.contains("[number]") && all.contains("[path]"), "{all}");
    }
}

fn json_of(spans: &Spans, span: &str, at: usize, name: &str) -> Value {
    serde_json::from_str(&attribute(spans.all(span)[at], name).expect("captured")).expect("JSON")
}

#[tokio::test(start_paused = true)]
async fn messages_have_the_form_of_the_conventions() {
    let recorder = Recorder::start();
    run_with_secrets(Telemetry::new().capture(Capture::Spans)).await;
    let spans = recorder.spans();
    let asked = json_of(&spans, "chat discreet", 1, "gen_ai.input.messages");
    assert_eq!(asked[0], json!({"role": "user", "parts": [{"type": "text", "content": "What is hunter2?"}]}));
    let call = json!({"type": "tool_call", "id": "c2", "name": "broken", "arguments": {"at": "hunter2"}});
    assert_eq!((&asked[1]["role"], &asked[1]["parts"][1]), (&json!("assistant"), &call));
    let answer = json!({"type": "tool_call_response", "id": "c1", "response": "found hunter2"});
    assert_eq!(asked[2], json!({"role": "tool", "parts": [answer]}));
    let said = json_of(&spans, "chat discreet", 1, "gen_ai.output.messages");
    let parts = json!([{"type": "reasoning", "content": "hunter2"}, {"type": "text", "content": "It is hunter2."}]);
    assert_eq!(said, json!([{"role": "assistant", "parts": parts, "finish_reason": "stop"}]));
    let system = json_of(&spans, "chat discreet", 0, "gen_ai.system_instructions");
    assert_eq!(system, json!([{"type": "text", "content": "The password is hunter2."}]));
    let tools = json_of(&spans, "chat discreet", 0, "gen_ai.tool.definitions");
    assert_eq!((&tools[0]["type"], &tools[0]["name"]), (&json!("function"), &json!("lookup")));
    assert_eq!(
        attribute(spans.one("execute_tool lookup"), "gen_ai.tool.call.result").as_deref(),
        Some("found hunter2")
    );
}

#[tokio::test(start_paused = true)]
async fn content_in_events_is_in_no_span() {
    let recorder = Recorder::start();
    run_with_secrets(Telemetry::new().capture(Capture::Events)).await;
    let events = recorder.events("gen_ai.client.inference.operation.details");
    assert_eq!(events.len(), 2);
    assert_eq!(severity(&events[0]), Severity::Debug);
    let fields = fields(&events[1]);
    for name in ["gen_ai.input.messages", "gen_ai.output.messages", "gen_ai.system_instructions"] {
        assert!(fields[name].contains(SECRET), "{name}");
    }
    assert_eq!(
        (fields["gen_ai.operation.name"].as_str(), fields["gen_ai.usage.input_tokens"].as_str()),
        ("chat", "10")
    );
    let spans = recorder.spans();
    let chat = spans.all("chat discreet")[1].span_context.span_id();
    assert_eq!(events[1].trace_context().expect("of a span").span_id, chat);
    let broken = format!("{:?}", spans.one("execute_tool broken").status);
    assert!(broken.contains("the disk"), "errors are told where content is: {broken}");
    let rest = format!("{:?}", spans.0.iter().map(|s| (&s.attributes, &s.events)).collect::<Vec<_>>());
    assert!(!rest.contains(SECRET), "{rest}");
}

#[tokio::test(start_paused = true)]
async fn an_attribute_is_no_larger_than_allowed_and_holds_the_newest_messages() {
    let recorder = Recorder::start();
    let telemetry = Telemetry::new().capture(Capture::Spans).content_bytes(100);
    let agent = Agent::builder("brief", Named::new("brief", [Turn::text("ä".repeat(500))])).middleware(telemetry);
    let talk =
        (0..50).flat_map(|i| [Message::user(format!("question {i}")), Message::assistant(format!("answer {i}"))]);
    let request = RunRequest::new(talk.chain([Message::user("the newest")]).collect());
    finished(agent.build().expect("builds").start(request).await);
    let spans = recorder.spans();
    let asked = json_of(&spans, "chat brief", 0, "gen_ai.input.messages");
    let asked = asked.as_array().expect("messages");
    assert_eq!(asked.last().expect("one")["parts"][0]["content"], "the newest");
    assert!(asked.len() < 15, "{asked:?}");
    let said = json_of(&spans, "chat brief", 0, "gen_ai.output.messages");
    let said = said[0]["parts"][0]["content"].as_str().expect("text");
    assert!(said.ends_with("[cut]") && said.len() < 110, "{said}");
}

#[tokio::test(start_paused = true)]
async fn the_bytes_of_media_are_never_captured() {
    let recorder = Recorder::start();
    let agent = Agent::builder("sees", Named::new("sees", [Turn::text("A cat.")]))
        .middleware(Telemetry::new().capture(Capture::Spans))
        .build()
        .expect("builds");
    let image = Part::Image(Media::base64("QUJDREVG", "image/png"));
    let document = Part::Document(Media::url("https://example.test/a.pdf"));
    let message = Message::User(UserMessage::new(vec![image, document]));
    finished(agent.start(RunRequest::new(vec![message])).await);
    let asked = json_of(&recorder.spans(), "chat sees", 0, "gen_ai.input.messages");
    let blob = json!({"type": "blob", "modality": "image", "mime_type": "image/png", "base64_length": 8});
    assert_eq!(asked[0]["parts"][0], blob);
    assert_eq!(asked[0]["parts"][1]["uri"], "https://example.test/a.pdf");
}

#[tokio::test(start_paused = true)]
async fn a_model_that_a_middleware_calls_has_spans_too_so_that_tokens_still_add_up() {
    let recorder = Recorder::start();
    let telemetry = Telemetry::new();
    let small =
        ScriptedModel::new([Turn::text("They talked."), Turn::text("They talked."), Turn::text("They talked.")]);
    let summary = Summary::new(telemetry.model(small)).keep(Keep::Messages(1));
    let compaction =
        ContextCompaction::builder().trigger(Trigger::Messages(3)).strategy(summary).build().expect("builds");
    let agent = Agent::builder("talks", Named::new("talks", [Turn::text("ok")]))
        .middleware(compaction)
        .middleware(telemetry)
        .build()
        .expect("builds");
    let text = "word ".repeat(2000);
    let talk = [Message::user(&*text), Message::assistant(&*text), Message::user(&*text), Message::assistant("yes")];
    let end = finished(agent.start(RunRequest::new(talk.into_iter().chain([Message::user("and?")]).collect())).await);
    let spans = recorder.spans();
    assert_eq!(spans.above(spans.all("chat scripted")[0]), Some("invoke_agent talks"), "{}", spans.tree());
    let chats = spans.0.iter().filter(|span| span.name.starts_with("chat "));
    let input: i64 = chats.map(|span| number(span, "gen_ai.usage.input_tokens")).sum();
    assert_eq!(input as u64, end.usage.prompt());
}

#[test]
fn the_configuration_is_data() {
    let config: TelemetryConfig =
        serde_json::from_value(json!({"capture": "events", "token_metrics": "both", "content_bytes": 10}))
            .expect("fits");
    assert_eq!((config.capture, config.content_bytes), (Capture::Events, 10));
    assert!(serde_json::from_value::<TelemetryConfig>(json!({"captures": "events"})).is_err());
}
