//! Codecs, and answers in the provider's format.

use agent_core::{
    AssistantMessage, Block, Chunk, History, Message, ModelRequest, ModelResponse, Result, ToolMessage,
    message::{Origin, Raw},
    model::MessageBuilder,
    testing::detached_run,
};
use agent_llm::{Codec, GeminiCodec, GeminiProfile};
use serde_json::{Value, json};

use super::common::{encoded, streamed};

/// A codec of a model that does not support media in results.
pub(crate) fn codec() -> GeminiCodec {
    GeminiCodec::new("gemini-2.5-flash", GeminiProfile::compatible("acme", "http://acme.test/v1beta")).expect("a codec")
}

/// A codec of a model that requires signatures.
pub(crate) fn newer() -> GeminiCodec {
    GeminiCodec::new("gemini-3-flash", GeminiProfile::compatible("acme", "http://acme.test/v1beta")).expect("a codec")
}

pub(crate) fn origin() -> Origin {
    Origin::new("gemini-generate", "acme", "another-model")
}

pub(crate) fn own(json: &Value) -> Raw {
    Raw::from_value(origin(), json)
}

pub(crate) fn text(words: &str) -> Value {
    json!({"text": words})
}

pub(crate) fn thought(words: &str) -> Value {
    json!({"text": words, "thought": true})
}

pub(crate) fn signed(mut part: Value) -> Value {
    part["thoughtSignature"] = "c2ln".into();
    part
}

pub(crate) fn call(name: &str, args: Value) -> Value {
    json!({"functionCall": {"name": name, "args": args}})
}

/// A response with one candidate.
pub(crate) fn response(parts: &[Value], finish: Option<&str>) -> Value {
    let mut candidate = json!({"content": {"parts": parts, "role": "model"}, "index": 0});
    if let Some(finish) = finish {
        candidate["finishReason"] = finish.into();
    }
    json!({
        "candidates": [candidate], "modelVersion": "gemini-2.5-flash-001", "responseId": "r1",
        "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 4, "totalTokenCount": 14},
    })
}

pub(crate) fn read(body: &Value) -> ModelResponse {
    codec().decode(body.to_string().as_bytes()).expect("an answer")
}

pub(crate) fn blocks(parts: &[Value]) -> Vec<Block> {
    read(&response(parts, Some("STOP"))).message.blocks().to_vec()
}

pub(crate) fn events(frames: &[Value]) -> String {
    frames.iter().map(|frame| format!("data: {frame}\r\n\r\n")).collect()
}

/// A stream of frames, each with these parts.
pub(crate) fn frames(pieces: &[Vec<Value>]) -> Vec<Value> {
    let last = pieces.len().saturating_sub(1);
    let frames = pieces.iter().enumerate();
    frames.map(|(at, parts)| response(parts, (at == last).then_some("STOP"))).collect()
}

pub(crate) fn stream(frames: &[Value]) -> (ModelResponse, Vec<Chunk>) {
    try_stream(frames).expect("an answer")
}

pub(crate) fn try_stream(frames: &[Value]) -> Result<(ModelResponse, Vec<Chunk>)> {
    streamed(&codec(), &events(frames))
}

pub(crate) fn heard(chunks: &[Chunk]) -> Vec<Block> {
    let mut message = MessageBuilder::default();
    chunks.iter().for_each(|chunk| message.push(chunk));
    message.into_blocks()
}

pub(crate) fn raw(response: &ModelResponse) -> Value {
    response.message.raw().expect("raw").to_value()
}

/// Returns the encoded contents of this history.
pub(crate) fn contents(codec: &impl Codec, history: History) -> Value {
    encoded(codec, &ModelRequest::new(detached_run(history).cx().clone()))["contents"].clone()
}

/// A question, `message`, and a result for each of its calls.
pub(crate) fn turn(message: &AssistantMessage) -> History {
    let results = message.calls().map(|call| ToolMessage::text(call.id.clone(), call.name.clone(), "done", false));
    let results: Vec<_> = results.map(Message::Tool).collect();
    History::import([Message::user("u"), Message::Assistant(message.clone())].into_iter().chain(results)).0
}

/// Returns the encoded content of `message`.
pub(crate) fn sent_back(codec: &impl Codec, message: &AssistantMessage) -> Value {
    contents(codec, turn(message))[1].clone()
}
