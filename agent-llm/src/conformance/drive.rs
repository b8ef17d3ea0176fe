//! Helpers that drive a codec.

use agent_core::{
    AssistantMessage, Chunk, History, Message, ModelRequest, ModelResponse, Result, ToolMessage, testing::detached_run,
};
use serde_json::Value;

use crate::Codec;

/// Decodes a stream that arrives in these pieces; returns the response and its chunks.
pub(super) fn read_pieces<'a>(
    codec: &dyn Codec,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> Result<(ModelResponse, Vec<Chunk>)> {
    let (mut decoder, mut chunks, mut splitter) = (codec.decoder(true), Vec::new(), codec.framing().splitter());
    for piece in pieces {
        splitter.push(piece, |event| decoder.frame(event, &mut chunks))?;
    }
    splitter.finish(|event| decoder.frame(event, &mut chunks))?;
    let response = decoder.finish(&mut chunks)?;
    Ok((response, chunks))
}

/// Decodes a sequence of events; returns the response and their chunks.
pub(super) fn read_events<E: AsRef<str>>(
    codec: &dyn Codec,
    events: impl IntoIterator<Item = E>,
) -> Result<(ModelResponse, Vec<Chunk>)> {
    let (mut decoder, mut chunks) = (codec.decoder(true), Vec::new());
    events.into_iter().try_for_each(|event| decoder.frame(event.as_ref(), &mut chunks))?;
    let response = decoder.finish(&mut chunks)?;
    Ok((response, chunks))
}

/// Returns everything that is persisted of an answer.
pub(super) fn kept(response: &ModelResponse) -> Value {
    // Serialise to text first, so that raw JSON is included in the comparison.
    let json = serde_json::to_string(response).expect("a response can be kept");
    serde_json::from_str(&json).expect("it is JSON")
}

/// Builds the request that follows `message`: a user message, the message, and a result for each of
/// its calls.
pub(super) fn request_after(message: &AssistantMessage) -> ModelRequest {
    let result = |(at, call): (usize, &agent_core::ToolCall)| {
        Message::Tool(ToolMessage::text(call.id.clone(), call.name.clone(), format!("result {at}"), false))
    };
    let results: Vec<_> = message.calls().enumerate().map(result).collect();
    request([Message::user("go"), Message::Assistant(message.clone())].into_iter().chain(results))
}

/// Builds a request with these messages, repaired if calls and results are unpaired.
pub(super) fn request(messages: impl IntoIterator<Item = Message>) -> ModelRequest {
    ModelRequest::new(detached_run(History::import(messages).0).cx().clone())
}

/// Returns the encoded body as text.
pub(super) fn encoded(codec: &dyn Codec, request: &ModelRequest) -> Result<String, String> {
    let request = codec.encode(request).map_err(|error| format!("a request was not encoded: {error}"))?;
    String::from_utf8(request.into_body().to_vec()).map_err(|_| "a request is not UTF-8".to_owned())
}

/// Parses text that must be JSON.
pub(super) fn parsed(json: &str) -> Result<Value, String> {
    serde_json::from_str(json).map_err(|error| format!("not JSON ({error}): {json}"))
}

/// Flattens the outcome of a check into complaints; empty if the check passed.
pub(super) fn complaints(result: Result<Vec<String>, String>, about: &str) -> Vec<String> {
    let all = result.unwrap_or_else(|one| vec![one]);
    all.into_iter().map(|complaint| format!("{about}: {complaint}")).collect()
}
