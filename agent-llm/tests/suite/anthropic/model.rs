//! The model with an in-process provider.

use std::sync::Arc;

use agent_core::{
    AssistantMessage, Block, Error, ErrorKind, History, Message, Model, ModelParams, ModelRequest, ModelResponse,
    Result, ToolMessage,
    message::{Origin, Raw, Reasoning},
    model::Effort,
};
use agent_llm::{Auth, Wire};
use serde_json::{Value, json};

use super::{
    answer,
    common::{Answer, Provider, ask, ask_to_stream, listen, say},
    req_of, start, stop, stream_of, text_delta,
};

fn refusal(message: &str) -> Answer {
    let error = json!({"type": "invalid_request_error", "message": message});
    Answer::json(400, json!({"type": "error", "error": error}).to_string())
}

fn hello() -> Answer {
    Answer::json(200, answer(&json!([{"type": "text", "text": "hello"}]), "end_turn"))
}

async fn call(provider: &Provider, model: &str, req: ModelRequest) -> Result<ModelResponse> {
    let acme = agent_llm::Provider::new("acme", Wire::Messages, "http://acme.test");
    acme.model(model).transport(provider.clone()).retries(0).build()?.call(req).await
}

/// A conversation with thinking: a turn that ended with a call, and one that only contains
/// thinking.
fn thoughtful() -> History {
    let raw = |json: &Value| {
        Raw::from_value(Origin::new("anthropic-messages", "acme", "m"), &json!({"role": "assistant", "content": json}))
    };
    let thinking = json!({"type": "thinking", "thinking": "hm", "signature": "of another model"});
    let thought = || {
        let signature = Some("of another model".to_owned());
        Block::Reasoning(Reasoning { text: "hm".into(), signature, ..Reasoning::default() })
    };
    let call = json!({"type": "tool_use", "id": "c", "name": "f", "input": {}});
    let mut history = History::from_messages([
        Message::user("u"),
        Message::Assistant(AssistantMessage::from_provider(vec![thought()], raw(&json!([thinking])))),
        Message::user("go on"),
    ])
    .expect("paired");
    let turn = vec![thought(), Block::tool_call("c", "f", "{}")];
    let turn = AssistantMessage::from_provider(turn, raw(&json!([thinking, call])));
    history.push_turn(turn, vec![ToolMessage::text("c", "f", "v", false)]).expect("a turn");
    history
}

fn thinks(body: &Value) -> bool {
    body["messages"].to_string().contains("thinking")
}

#[tokio::test]
async fn thinking_that_the_provider_refuses_is_left_out_and_the_request_sent_once_more() {
    for said in [
        "messages.1.content.0: Invalid `signature` in `thinking` block",
        "***.***.content.0: Invalid `data` in `redacted_thinking` block",
        "messages.3.content.0: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified",
    ] {
        let provider = Provider::new([refusal(said), hello()]);
        let req = req_of(thoughtful());
        let response = call(&provider, "claude-opus-4-6", req.clone()).await.expect("an answer");
        assert_eq!(response.message.text(), "hello", "{said}");
        let [first, second] = provider.bodies().try_into().expect("two requests");
        assert!(thinks(&first) && !thinks(&second));
        let empty = json!([{"type": "text", "text": "[empty]"}]);
        let call = json!([{"type": "tool_use", "id": "c", "name": "f", "input": {}}]);
        assert_eq!((&second["messages"][1]["content"], &second["messages"][3]["content"]), (&empty, &call));
        assert_eq!(req.messages, thoughtful(), "what is kept is not changed");
    }
}

#[tokio::test]
async fn it_is_tried_once() {
    let said = "Invalid `signature` in `thinking` block";
    let provider = Provider::new([refusal(said), refusal(said)]);
    let error = call(&provider, "claude-opus-4-6", req_of(thoughtful())).await.expect_err("refused");
    assert_eq!((error.kind(), provider.calls()), (ErrorKind::InvalidRequest, 2));
    let provider = Provider::new([refusal(said)]);
    let error = call(&provider, "claude-opus-4-6", ask()).await.expect_err("refused");
    assert_eq!((error.message(), provider.calls()), (said, 1), "there is no thinking to leave out");
}

#[tokio::test]
async fn any_other_refusal_is_the_callers() {
    let fail = async |answer: Answer| -> (Error, usize) {
        let provider = Provider::new([answer]);
        let error = call(&provider, "claude-opus-4-6", req_of(thoughtful())).await.expect_err("refused");
        (error, provider.calls())
    };
    for said in ["max_tokens: Field required", "thinking.type: adaptive is not supported on this model"] {
        let (error, calls) = fail(refusal(said)).await;
        assert_eq!((error.kind(), error.message(), calls), (ErrorKind::InvalidRequest, said, 1));
    }
    let (error, calls) = fail(Answer::json(500, "Invalid `signature` in `thinking` block")).await;
    assert_eq!((error.kind(), calls), (ErrorKind::Provider, 1));
}

#[tokio::test]
async fn a_model_with_a_budget_goes_on_without_thinking() {
    let provider = Provider::new([refusal("Invalid `signature` in `thinking` block"), hello()]);
    let mut req = req_of(thoughtful());
    req.params = Arc::new(ModelParams::default().effort(Effort::High));
    call(&provider, "claude-haiku-4-5", req).await.expect("an answer");
    let [first, second] = provider.bodies().try_into().expect("two requests");
    assert_eq!(first["thinking"]["type"], "enabled");
    assert_eq!(second.get("thinking"), None, "it insists on the thinking of a turn with calls");

    let provider = Provider::new([refusal("Invalid `signature` in `thinking` block"), hello()]);
    let mut req = req_of(thoughtful());
    req.params = Arc::new(ModelParams::default().effort(Effort::High));
    call(&provider, "claude-opus-4-6", req).await.expect("an answer");
    let bodies = provider.bodies();
    assert_eq!(
        (&bodies[1]["thinking"], &bodies[1]["output_config"]),
        (&bodies[0]["thinking"], &bodies[0]["output_config"])
    );
}

#[tokio::test]
async fn the_key_and_the_versions_go_with_every_request() {
    let provider = Provider::new([hello(), hello()]);
    let model = agent_llm::model("anthropic:m")
        .api_key("a-key-of-mine")
        .option("betas", json!(["b-1"]))
        .transport(provider.clone());
    model.build().expect("a model").call(ask()).await.expect("an answer");
    assert_eq!(provider.header("x-api-key").as_deref(), Some("a-key-of-mine"));
    assert_eq!(provider.header("anthropic-version").as_deref(), Some("2023-06-01"));
    assert_eq!(provider.header("anthropic-beta").as_deref(), Some("b-1"));
    assert_eq!(provider.header("authorization"), None);

    let gateway = agent_llm::Provider::new("gateway", Wire::Messages, "http://gateway.test");
    let model = gateway.model("m").auth(Auth::Bearer).option("version", "").api_key("a-key-of-mine");
    let model = model.transport(provider.clone());
    model.build().expect("a model").call(ask()).await.expect("an answer");
    assert_eq!(provider.header("authorization").as_deref(), Some("Bearer a-key-of-mine"));
    assert_eq!(provider.header("anthropic-version"), None);
}

#[tokio::test]
async fn streamed_or_whole_the_answer_is_the_same() {
    let text = json!({"type": "text", "text": ""});
    let events = stream_of(&[start(0, text), text_delta(0, "hel"), text_delta(0, "lo"), stop(0)]);
    let provider = Provider::new([hello(), Answer::stream([say(events)])]);
    let whole = call(&provider, "m", ask()).await.expect("an answer");
    let mut req = ask_to_stream();
    let chunks = listen(&mut req);
    let streamed = call(&provider, "m", req).await.expect("an answer");
    assert_eq!(streamed, whole);
    assert_eq!(chunks.lock().expect("lock").len(), 3);
    assert_eq!(provider.bodies()[1]["stream"], true);
}

#[test]
fn what_is_known_of_the_model_is_what_the_builder_was_told() {
    let model = agent_llm::model("anthropic:m")
        .api_key("a-key-of-mine")
        .context_window(200_000)
        .max_output(99)
        .without_tools()
        .build()
        .expect("a model");
    let info = model.info();
    assert_eq!((info.context_window, info.max_output, info.tools), (Some(200_000), Some(99), false));
    assert_eq!((info.name.as_str(), info.provider.as_str()), ("m", "anthropic"));
}

#[tokio::test]
async fn a_request_without_a_limit_gets_one_that_the_model_can_keep() {
    for (model, wanted) in [("claude-opus-4-6", 32_000), ("claude-3-5-haiku-latest", 8_192), ("an-alias", 32_000)] {
        let provider = Provider::new([hello()]);
        call(&provider, model, ask()).await.expect("an answer");
        assert_eq!(provider.bodies()[0]["max_tokens"], wanted, "{model}");
    }
    let provider = Provider::new([hello()]);
    let model = agent_llm::model("anthropic:claude-opus-4-6").max_output(99).transport(provider.clone()).build();
    model.expect("a model").call(ask()).await.expect("an answer");
    assert_eq!(provider.bodies()[0]["max_tokens"], 99);
}
