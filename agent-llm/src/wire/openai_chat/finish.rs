//! What an answer becomes.

use agent_core::{
    Error, FinishReason, ModelResponse,
    message::{Origin, Raw},
};
use serde_json::{json, value::RawValue};

use super::{details::parse, read::Reading};
use crate::ProviderError;

/// The response of a message that was read from `json`.
pub(in crate::wire) fn answered(reading: Reading, json: Box<RawValue>, origin: &Origin, finish: &str) -> ModelResponse {
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
pub(in crate::wire) fn provider_error(json: &RawValue, origin: &Origin) -> Error {
    ProviderError::from_json(&json!({ "error": parse(json).unwrap_or_default() })).into_error(origin.provider())
}
