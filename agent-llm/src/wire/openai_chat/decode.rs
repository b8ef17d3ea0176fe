//! Answers that come whole.

use std::sync::Arc;

use agent_core::{
    Error, FinishReason, ModelResponse, Result,
    message::{Origin, Raw},
};
use serde::de::IgnoredAny;
use serde_json::{Map, Value, value::RawValue};

use super::{
    choices::{Choices, Numbered},
    details::{add_all, further, parse},
    read::{ORDER, Reading, read},
    usage,
};
use crate::{
    ProviderError,
    error::not_the_protocol,
    wire::{lenient::Str, open_struct::open_struct},
};

open_struct! {
    Completion {
        id: Str<'a> = "id",
        model: Str<'a> = "model",
        choices: Choices<Choice<'a>> = "choices",
        usage: &'a RawValue = "usage",
        error: &'a RawValue = "error",
        _object: IgnoredAny = "object",
        _created: IgnoredAny = "created",
    }
}

open_struct! {
    Choice {
        index: u64 = "index",
        message: &'a RawValue = "message",
        finish_reason: Str<'a> = "finish_reason",
        error: &'a RawValue = "error",
        _delta: IgnoredAny = "delta",
    }
}

impl Numbered for Choice<'_> {
    fn number(&self) -> u64 {
        self.index.unwrap_or(0)
    }
}

/// Reads the body of an answer that came whole.
pub(super) fn decode(body: &str, origin: &Origin) -> Result<ModelResponse> {
    let unreadable = || not_the_protocol(origin.provider(), "the answer is not a chat completion", body);
    let completion: Completion<'_> = serde_json::from_str(body).map_err(|e| unreadable().with_source(e))?;
    let Choices { first: choice, others } = completion.choices.unwrap_or_default();
    if let Some(error) = completion.error.or(choice.as_ref().and_then(|c| c.error)) {
        return Err(provider_error(error, origin));
    }
    let choice = choice.ok_or_else(unreadable)?;
    let json = choice.message.ok_or_else(unreadable)?;
    let id = completion.id.filter(|id| !id.is_empty()).map(|id| Arc::<str>::from(id.0));
    let reading = read(json, origin, id.as_deref().unwrap_or_default(), ORDER);
    let reading = reading.map_err(|e| unreadable().with_source(e))?;
    let mut response = respond(reading, json.to_owned(), origin, choice.finish_reason.as_ref().map_or("", |f| &f.0));
    add_all(&mut response.details, &completion.rest);
    add_all(&mut response.details, &choice.rest);
    if !others.is_empty() {
        response.details.insert("choices".into(), others.iter().map(other).collect());
    }
    if let Some(json) = completion.usage {
        usage::read(json, &mut response);
    }
    response.model = completion.model.filter(|m| !m.is_empty()).map(|m| origin.answered_by(&m.0));
    response.id = id;
    Ok(response)
}

fn other(choice: &Choice<'_>) -> Value {
    let mut details = Map::new();
    add_all(&mut details, &choice.rest);
    let message = choice.message.and_then(parse).unwrap_or_default();
    further(choice.number(), message, choice.finish_reason.as_ref().map_or("", |f| &f.0), details)
}

/// The response of a message that was read from `json`.
pub(super) fn respond(reading: Reading, json: Box<RawValue>, origin: &Origin, finish: &str) -> ModelResponse {
    let refused = reading.refused;
    let message = reading.into_message(Raw::new(origin.clone(), json));
    let finish = match finish {
        "" | "stop" | "tool_calls" | "function_call" if message.has_calls() => FinishReason::ToolCalls,
        "" | "stop" | "tool_calls" | "function_call" if refused => FinishReason::ContentFilter,
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
    let value = parse(json).unwrap_or_default();
    ProviderError::from_json(&serde_json::json!({ "error": value })).into_error(origin.provider())
}
