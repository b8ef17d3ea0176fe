//! The wire of OpenAI Responses.

use crate::common;

mod decode;
mod encode;
mod properties;
mod request;
mod stream;
mod turns;

use agent_core::{
    Block, ModelResponse,
    message::{Origin, Raw},
};
use agent_llm::{Codec, OpenAiResponsesCodec, Profile};
use serde_json::{Value, json};

const WIRE: &str = "openai-responses";

/// A codec without storage settings.
fn codec() -> OpenAiResponsesCodec {
    codec_of("m", |profile| profile.responses.stateless = false)
}

fn codec_of(model: &str, change: impl FnOnce(&mut Profile)) -> OpenAiResponsesCodec {
    let mut profile = Profile::compatible("acme", "http://acme.test/v1");
    change(&mut profile);
    OpenAiResponsesCodec::new(model, profile).expect("a codec")
}

/// JSON of this wire's provider.
fn own(json: &Value) -> Raw {
    Raw::from_value(Origin::new(WIRE, "acme", "m"), json)
}

/// The body of a response with this output.
fn body(output: &Value) -> String {
    json!({"id": "r1", "object": "response", "model": "m-1", "status": "completed", "output": output}).to_string()
}

/// Decodes a body with this output.
fn read(output: &Value) -> ModelResponse {
    codec().decode(body(output).as_bytes()).expect("an answer")
}

fn message(id: &str, text: &str) -> Value {
    let part = json!({"type": "output_text", "annotations": [], "text": text});
    json!({"id": id, "type": "message", "status": "completed", "content": [part], "role": "assistant"})
}

fn reasoning(id: &str, summary: &[&str]) -> Value {
    let summary: Vec<_> = summary.iter().map(|text| json!({"type": "summary_text", "text": text})).collect();
    json!({"id": id, "type": "reasoning", "summary": summary, "encrypted_content": "sealed"})
}

fn call(id: &str, name: &str, arguments: &str) -> Value {
    let (item, call) = (format!("fc_{id}"), format!("call_{id}"));
    json!({"id": item, "type": "function_call", "status": "completed", "arguments": arguments, "call_id": call, "name": name})
}

/// Returns the blocks' content, without their JSON.
fn words(blocks: &[Block]) -> Vec<String> {
    let word = |block: &Block| match block {
        Block::Text(text) => format!("text {}", text.text),
        Block::Reasoning(reasoning) => format!("reasoning {}", reasoning.text),
        Block::ToolCall(call) => format!("call {} {} {}", call.id, call.name, call.arguments),
        Block::Image(_) => "image".into(),
        Block::Server(call) => format!("server {}", call.name),
        Block::Other(raw) => format!("other {}", raw.to_value()["type"].as_str().unwrap_or("?")),
        other => format!("{other:?}"),
    };
    blocks.iter().map(word).collect()
}
