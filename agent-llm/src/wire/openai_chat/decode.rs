//! Answers that come whole.

use agent_core::{AssistantMessage, Error, FinishReason, ModelResponse, Origin, Raw, Result, Usage};
use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use super::{
    read::{ORDER, Reading, read},
    usage::usage,
};
use crate::{
    ProviderError,
    error::not_the_protocol,
    wire::lenient::{First, Numbered, Str},
};

#[derive(Deserialize)]
struct Completion<'a> {
    #[serde(borrow)]
    id: Option<Str<'a>>,
    #[serde(borrow)]
    model: Option<Str<'a>>,
    #[serde(borrow, default)]
    choices: First<Choice<'a>>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    index: Option<u64>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    #[serde(borrow)]
    finish_reason: Option<Str<'a>>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

impl Numbered for Choice<'_> {
    fn number(&self) -> Option<u64> {
        self.index
    }
}

/// Reads the body of an answer that came whole.
pub(super) fn decode(body: &str, origin: &Origin) -> Result<ModelResponse> {
    let unreadable = || not_the_protocol(origin.provider(), "the answer is not a chat completion", body);
    let completion: Completion<'_> = serde_json::from_str(body).map_err(|e| unreadable().with_source(e))?;
    let choice = completion.choices.0;
    if let Some(error) = completion.error.or(choice.as_ref().and_then(|c| c.error)) {
        return Err(provider_error(error, origin));
    }
    let choice = choice.ok_or_else(unreadable)?;
    let json = choice.message.ok_or_else(unreadable)?.get();
    let id = completion.id.filter(|id| !id.is_empty()).map(|id| id.0.into_owned());
    let reading = read(json, origin, id.as_deref().unwrap_or_default(), ORDER);
    let reading = reading.map_err(|e| unreadable().with_source(e))?;
    let mut response = respond(reading, json.to_owned(), origin, choice.finish_reason.as_ref().map(|f| &*f.0));
    response.usage = completion.usage.map_or_else(Usage::default, usage);
    response.model = completion.model.filter(|m| !m.is_empty()).map(|m| m.0.into_owned());
    response.id = id;
    Ok(response)
}

/// The response of a message that was read from `json`.
pub(super) fn respond(reading: Reading, json: String, origin: &Origin, finish: Option<&str>) -> ModelResponse {
    let raw = Raw::parse(origin.clone(), json).expect("it was just read as JSON");
    let mut message = AssistantMessage::from_provider(reading.blocks, raw);
    if reading.named_calls {
        message.blocks_mut(); // the results will name ids that the raw message does not have
    }
    let finish = match finish.unwrap_or_default() {
        "" | "stop" | "tool_calls" | "function_call" if message.has_calls() => FinishReason::ToolCalls,
        "" | "stop" | "tool_calls" | "function_call" if reading.refused => FinishReason::ContentFilter,
        "" | "stop" => FinishReason::Stop,
        "tool_calls" | "function_call" => FinishReason::ToolCalls,
        "length" | "max_tokens" | "model_length" => FinishReason::Length,
        "content_filter" => FinishReason::ContentFilter,
        other => FinishReason::Other(other.to_owned()),
    };
    ModelResponse::new(message).with_finish(finish)
}

/// The error in an object that stands in place of an answer, or in the middle of one.
pub(super) fn provider_error(json: &RawValue, origin: &Origin) -> Error {
    let value: Value = serde_json::from_str(json.get()).unwrap_or_default();
    ProviderError::from_json(&serde_json::json!({ "error": value })).into_error(origin.provider())
}
