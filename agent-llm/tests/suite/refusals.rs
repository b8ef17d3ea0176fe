//! Requests that a provider refuses: repaired by the rule that its message points to.

use std::sync::{Arc, Mutex};

use agent_core::{
    AssistantMessage, Block, ErrorKind, Event, EventKind, History, Message, Model, ModelRequest, ToolMessage, ToolSpec,
    UserMessage, message::Part,
};
use agent_llm::Wire;
use serde_json::{Value, json};

use super::common::{Answer, Provider, hello, request, run};

type Warnings = Arc<Mutex<Vec<String>>>;

/// A conversation with a long call id that occurs twice, an image, and a tool with a rich schema.
fn rich() -> Vec<Message> {
    let id = "call".repeat(15);
    let turn = || {
        [
            Message::Assistant(AssistantMessage::new(vec![Block::tool_call(&*id, "look", "{}")])),
            Message::Tool(ToolMessage::text(&*id, "look", "r", false)),
        ]
    };
    let image = agent_core::Media::base64("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ", "image/png");
    let asks = Message::User(UserMessage::new(vec![Part::text("see"), Part::Image(image)]));
    [asks].into_iter().chain(turn()).chain(turn()).chain([Message::user("and?"), Message::user("now?")]).collect()
}

fn listening(mut req: ModelRequest) -> (ModelRequest, Warnings) {
    let heard = Warnings::default();
    let hears = heard.clone();
    req.cx.attach(Arc::new(move |event: &Event| {
        if let EventKind::Warning { message } = &event.kind {
            hears.lock().expect("free").push(message.clone());
        }
    }));
    let schema = json!({"type": "object", "properties": {"a b": {"$ref": "#/$defs/T"}}, "$defs": {"T": {
        "type": "object", "properties": {"next": {"$ref": "#/$defs/T"}, "n": {"type": "integer", "multipleOf": 3}}}}});
    req.tools = [ToolSpec::new("look", "looks", schema), ToolSpec::new("find", "finds", json!({"type": "object"}))]
        .into_iter()
        .collect();
    (req, heard)
}

fn refusal(said: &str) -> Answer {
    Answer::json(400, json!({"error": {"message": said, "type": "invalid_request_error"}}).to_string())
}

fn answer(wire: Wire) -> Answer {
    Answer::json(
        200,
        match wire {
            Wire::Messages => json!({"id": "m", "type": "message", "role": "assistant", "model": "m",
                "content": [{"type": "text", "text": "hello"}], "stop_reason": "end_turn", "usage": {}})
            .to_string(),
            Wire::Responses => json!({"id": "r", "object": "response", "status": "completed", "model": "m", "output": [
                {"type": "message", "id": "i", "role": "assistant", "status": "completed",
                 "content": [{"type": "output_text", "text": "hello", "annotations": []}]}]})
            .to_string(),
            Wire::Generate => json!({"candidates": [
                {"content": {"role": "model", "parts": [{"text": "hello"}]}, "finishReason": "STOP"}]})
            .to_string(),
            Wire::Cohere => json!({"id": "c", "finish_reason": "COMPLETE",
                "message": {"role": "assistant", "content": [{"type": "text", "text": "hello"}]}})
            .to_string(),
            Wire::Ollama => json!({"model": "m", "created_at": "2026-01-01T00:00:00Z", "done": true,
                "done_reason": "stop", "message": {"role": "assistant", "content": "hello"}})
            .to_string(),
            _ => hello(),
        },
    )
}

fn model(wire: Wire, provider: &Provider) -> impl Model + use<> {
    let acme = agent_llm::Provider::new("acme", wire, "http://acme.test");
    acme.model("m").transport(provider.clone()).retries(0).build().expect("a model")
}

/// A refusal, the rule that it points to, and a check that the request follows it.
type Refusal = (&'static str, &'static str, fn(&str) -> bool);

/// Refusals of Chat Completions and Messages.
const REFUSALS: [Refusal; 8] = [
    (
        "Invalid 'messages[1].tool_calls[0].id': string too long. Expected a string with maximum length 20",
        "call ids of at most 20",
        |b| !b.contains("callcallcallcallcallcall"),
    ),
    ("Tool call id was callcall but must be a-z, A-Z, 0-9, with a length of 9.", "call ids of 9", |b| {
        !b.contains("callcallcall")
    }),
    ("Duplicate function call id 'call'", "different ids", |b| !b.is_empty()),
    ("After the optional system message, conversation roles must alternate user/assistant", "alternate", |b| {
        !b.contains(r#""and?"},{"#)
    }),
    ("Unexpected role 'user' after role 'tool'", "an answer between", |b| b.contains("[empty]")),
    ("The `reasoning_content` in the thinking mode must be passed back to the API.", "reasoning_content", |b| {
        b.contains("reasoning_content")
    }),
    ("At most 0 image(s) may be provided in one request.", "at most 0 images", |b| b.contains("[image left out")),
    ("Invalid schema for function 'look': recursion is not supported", "simpler schemas", |b| {
        !b.contains("$ref") && !b.contains("multipleOf") && b.contains("\"look\"")
    }),
];

#[tokio::test]
async fn a_request_that_breaks_an_unknown_rule_is_repaired_once_and_the_rule_is_remembered() {
    for (said, rule, follows) in REFUSALS {
        let provider = Provider::new([refusal(said), answer(Wire::Chat), answer(Wire::Chat)]);
        let model = model(Wire::Chat, &provider);
        let run = run(rich());
        let (req, heard) = listening(ModelRequest::new(run.cx().clone()));
        let response = model.call(req.clone()).await.expect(said);
        assert_eq!(response.message.text(), "hello", "{said}");
        let repairs = response.details["repairs"][0].as_str().expect("a rule").to_owned();
        assert!(repairs.contains(rule), "{repairs}");
        let warnings = heard.lock().expect("free").clone();
        assert!(warnings.len() == 1 && warnings[0].contains(rule) && warnings[0].contains(said), "{warnings:?}");
        model.call(req.clone()).await.expect("the rule is known");
        let bodies: Vec<String> = provider.bodies().iter().map(Value::to_string).collect();
        assert_eq!(bodies.len(), 3, "{said}");
        assert!(follows(&bodies[1]), "{said}: {}", bodies[1]);
        assert_eq!(bodies[1], bodies[2], "{said}");
        assert_eq!(
            req.messages,
            History::from_messages(rich()).expect("paired"),
            "the stored conversation is unchanged"
        );
    }
}

#[tokio::test]
async fn an_image_that_the_provider_cannot_read_is_left_out_of_that_request_alone() {
    for said in ["Could not process image", "No endpoints found that support image input"] {
        let provider = Provider::new([refusal(said), answer(Wire::Messages), refusal(said), answer(Wire::Messages)]);
        let model = model(Wire::Messages, &provider);
        let run = run(rich());
        let (req, _) = listening(ModelRequest::new(run.cx().clone()));
        for _ in 0..2 {
            model.call(req.clone()).await.expect("an answer");
        }
        let left_out: Vec<bool> = provider.bodies().iter().map(|b| b.to_string().contains("image left out")).collect();
        assert_eq!(left_out, [false, true, false, true], "{said}");
        assert!(provider.bodies()[2].to_string().contains("image/png"), "{said}");
    }
}

#[tokio::test]
async fn a_tool_that_is_refused_even_in_simple_form_is_left_out_and_the_others_stay() {
    let said = "tools.0.custom.input_schema: JSON schema is invalid";
    let provider = Provider::new([refusal(said), refusal(said), answer(Wire::Messages)]);
    let run = run(rich());
    let (req, heard) = listening(ModelRequest::new(run.cx().clone()));
    model(Wire::Messages, &provider).call(req).await.expect("an answer");
    let bodies = provider.bodies();
    let names = |body: &Value| -> Vec<String> {
        let tools = body["tools"].as_array().expect("tools");
        tools.iter().map(|tool| tool["name"].as_str().expect("a name").to_owned()).collect()
    };
    assert_eq!((names(&bodies[1]), names(&bodies[2])), (vec!["look".into(), "find".into()], vec!["find".to_owned()]));
    let warnings = heard.lock().expect("free").clone();
    assert!(warnings.iter().any(|said| said.contains("the tool 'look'")), "{warnings:?}");
}

#[tokio::test]
async fn a_refusal_that_repeats_or_points_to_no_rule_is_the_callers() {
    let said = "Duplicate function call id 'x'";
    let provider = Provider::new([refusal(said), refusal(said)]);
    let run = run(rich());
    let (req, _) = listening(ModelRequest::new(run.cx().clone()));
    let error = model(Wire::Chat, &provider).call(req).await.expect_err("refused");
    assert_eq!((error.kind(), error.message(), provider.calls()), (ErrorKind::InvalidRequest, said, 2));
    let provider = Provider::new([refusal("Invalid value for 'temperature'")]);
    model(Wire::Chat, &provider).call(request([Message::user("hi")])).await.expect_err("refused");
    assert_eq!(provider.calls(), 1);
}

/// Refusals that point to a rule of any kind, and one that points to none.
const KINDS: [&str; 15] = [
    "Invalid 'input[1].call_id': string too long. Expected a string with maximum length 20",
    "messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'",
    "messages: `tool_use` ids must be unique",
    "messages: text content blocks must contain non-whitespace text",
    "After the optional system message, conversation roles must alternate user/assistant",
    "A conversation must start with a user message.",
    "Unexpected role 'user' after role 'tool'",
    "The toolConfig field must be defined when using toolUse and toolResult content blocks.",
    "thinking is enabled but reasoning_content is missing in assistant tool call message at index 1",
    "At most 1 image(s) may be provided in one request.",
    "Could not process image",
    "Image input is not supported by this model",
    "Invalid 'tools[0].function.description': string too long. Expected a string with maximum length 1024",
    "tools.0.custom.input_schema: JSON schema is invalid",
    "Invalid value for 'top_k'",
];

#[tokio::test]
async fn a_provider_that_refuses_each_rule_once_fails_at_most_one_turn_of_a_session() {
    for wire in [Wire::Chat, Wire::Responses, Wire::Messages, Wire::Generate, Wire::Cohere, Wire::Ollama] {
        let (mut failed, mut kinds) = (Vec::new(), KINDS.to_vec());
        kinds.rotate_left(wire as usize); // another order for each
        // Each refusal is followed by as many answers as its turn and the next one need at most.
        for said in kinds {
            let provider = Provider::new([refusal(said), answer(wire), answer(wire)]);
            let model = model(wire, &provider);
            let run = run(rich());
            let (req, _) = listening(ModelRequest::new(run.cx().clone()));
            if model.call(req.clone()).await.is_err() {
                failed.push(said);
            }
            let next = model.call(req).await.expect(said);
            assert_eq!(next.message.text(), "hello", "{wire}: {said}");
        }
        let unknown = |said: &&&str| !said.contains("top_k");
        assert!(failed.iter().filter(unknown).count() <= 3, "{wire}: not repaired: {failed:?}");
    }
}
