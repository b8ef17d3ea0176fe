//! The Anthropic Messages wire.

use crate::common;

mod clouds;
mod cost;
mod decode;
mod encode;
mod model;
mod properties;
mod replay;
mod request;
mod stream;

use agent_core::{
    AssistantMessage, Chunk, History, Message, ModelRequest, ModelResponse, message::Origin, testing::detached_run,
};
use agent_llm::{AnthropicCodec, AnthropicProfile};
use serde_json::{Value, json};

use self::common::{encoded, streamed};

fn codec() -> AnthropicCodec {
    codec_of("claude-opus-4-6")
}

fn codec_of(model: &str) -> AnthropicCodec {
    AnthropicCodec::new(model, AnthropicProfile::compatible("acme", "http://acme.test")).expect("a codec")
}

fn origin() -> Origin {
    Origin::new("anthropic-messages", "acme", "another-model")
}

/// Returns the body of an answer with this content.
fn answer(content: &Value, stop_reason: &str) -> String {
    json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-x", "content": content,
        "stop_reason": stop_reason, "stop_sequence": null, "usage": {"input_tokens": 10, "output_tokens": 5},
    })
    .to_string()
}

/// Returns the stream of these events, with the usual first and last events.
fn stream_of(events: &[Value]) -> String {
    let message = json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-x", "content": [],
        "stop_reason": null, "stop_sequence": null, "usage": {"input_tokens": 10, "output_tokens": 1},
    });
    let stop = json!({"stop_reason": "end_turn", "stop_sequence": null});
    let begin = [json!({"type": "message_start", "message": message}), json!({"type": "ping"})];
    let end = [
        json!({"type": "message_delta", "delta": stop, "usage": {"output_tokens": 5}}),
        json!({"type": "message_stop"}),
    ];
    begin.iter().chain(events).chain(&end).map(event).collect()
}

fn event(event: &Value) -> String {
    format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or("message"))
}

fn start(index: u32, block: Value) -> Value {
    let mut event = json!({"type": "content_block_start", "index": index});
    event["content_block"] = block;
    event
}

fn delta(index: u32, delta: Value) -> Value {
    let mut event = json!({"type": "content_block_delta", "index": index});
    event["delta"] = delta;
    event
}

fn text_delta(index: u32, text: &str) -> Value {
    delta(index, json!({"type": "text_delta", "text": text}))
}

fn input_delta(index: u32, json: &str) -> Value {
    delta(index, json!({"type": "input_json_delta", "partial_json": json}))
}

fn stop(index: u32) -> Value {
    json!({"type": "content_block_stop", "index": index})
}

/// Decodes a stream of these events.
fn read_stream(events: &[Value]) -> (ModelResponse, Vec<Chunk>) {
    streamed(&codec(), &stream_of(events)).expect("an answer")
}

fn raw(message: &AssistantMessage) -> Value {
    message.raw().expect("raw").to_value()
}

fn req_of(history: History) -> ModelRequest {
    ModelRequest::new(detached_run(history).cx().clone())
}

/// Returns the encoded messages of this history.
fn messages(history: History) -> Value {
    encoded(&codec(), &req_of(history))["messages"].clone()
}

/// Returns the encoding of `message` after a user message, followed by results of its calls.
fn sent_back(codec: &AnthropicCodec, message: &AssistantMessage) -> Value {
    let results = message
        .calls()
        .map(|call| Message::Tool(agent_core::ToolMessage::text(call.id.clone(), call.name.clone(), "done", false)));
    let said = [Message::user("u"), Message::Assistant(message.clone())];
    let history = History::from_messages(said.into_iter().chain(results)).expect("paired");
    encoded(codec, &req_of(history))["messages"][1].clone()
}
