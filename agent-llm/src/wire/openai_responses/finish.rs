//! What an answer becomes when it has ended.

use std::sync::Arc;

use agent_core::{
    AssistantMessage, Block, Error, FinishReason, ModelResponse,
    message::{Origin, Raw},
};
use serde_json::{Map, Value, value::RawValue};

use super::read::{items, name_calls, read};
use crate::{
    ProviderError,
    wire::{lenient::Str, open_struct::open_struct, usage},
};

open_struct! {
    /// A response, whole or at the end of a stream.
    ResponseSaid {
        id: Str<'a> = "id",
        model: Str<'a> = "model",
        _object: &'a RawValue = "object",
        output: &'a RawValue = "output",
        status: Str<'a> = "status",
        incomplete: &'a RawValue = "incomplete_details",
        error: &'a RawValue = "error",
        usage: &'a RawValue = "usage",
    }
}

open_struct! {
    Incomplete { reason: Str<'a> = "reason", }
}

/// Fields of a response that repeat the request, or the message.
const REPEATED: [&str; 27] = [
    "background",
    "frequency_penalty",
    "include",
    "input",
    "instructions",
    "max_output_tokens",
    "max_tool_calls",
    "metadata",
    "output_text",
    "parallel_tool_calls",
    "presence_penalty",
    "previous_response_id",
    "prompt",
    "prompt_cache_key",
    "prompt_cache_options",
    "prompt_cache_retention",
    "reasoning",
    "safety_identifier",
    "store",
    "temperature",
    "text",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
    "truncation",
    "user",
];

/// The response that `answer` is about, of these items. Those who listen are told by `tell` which blocks it has.
pub(super) fn respond(
    answer: &ResponseSaid<'_>,
    output: Box<RawValue>,
    origin: &Origin,
    tell: impl FnOnce(Vec<Block>) -> Vec<Block>,
) -> ModelResponse {
    let id = answer.id.as_ref().filter(|id| !id.is_empty()).map(|id| Arc::<str>::from(&*id.0));
    let mut blocks: Vec<Block> = items(output.get()).into_iter().flat_map(|item| read(item, origin)).collect();
    let named = name_calls(&mut blocks, id.as_deref().unwrap_or_default(), 0);
    let mut message = AssistantMessage::from_provider(tell(blocks), Raw::new(origin.clone(), output));
    if named {
        message.blocks_mut(); // the results will name ids that the raw message does not have
    }
    let finish = answer.finish(&message);
    let mut response = ModelResponse::new(message).with_finish(finish);
    response.model = answer.model.as_ref().filter(|m| !m.is_empty()).map(|m| origin.answered_by(&m.0));
    response.id = id;
    response.details = answer.details();
    if let Some(said) = answer.usage {
        usage::read(said, &mut response);
    }
    response
}

impl ResponseSaid<'_> {
    /// True if it says that there is no answer.
    pub(super) fn is_error(&self) -> bool {
        self.error.is_some() || self.status.as_ref().is_some_and(|status| status.0 == "failed")
    }

    fn finish(&self, message: &AssistantMessage) -> FinishReason {
        let incomplete = self.incomplete.and_then(|json| serde_json::from_str::<Incomplete<'_>>(json.get()).ok());
        let reason = incomplete.and_then(|incomplete| incomplete.reason);
        match (self.status.as_ref().map_or("", |status| &status.0), reason.as_ref().map(|reason| &*reason.0)) {
            ("incomplete", Some("max_output_tokens" | "max_tokens" | "length")) => FinishReason::Length,
            ("incomplete", Some("content_filter")) => FinishReason::ContentFilter,
            ("incomplete", Some(other)) => FinishReason::Other(other.to_owned()),
            ("" | "completed" | "complete", _) if message.has_calls() => FinishReason::ToolCalls,
            ("" | "completed" | "complete", _) if only_refuses(message) => FinishReason::ContentFilter,
            ("" | "completed" | "complete", _) => FinishReason::Stop,
            (status, _) => FinishReason::Other(status.to_owned()),
        }
    }

    /// What else was said.
    fn details(&self) -> Map<String, Value> {
        let rest = self.rest.iter().map(|(name, json)| (&*name.0, *json));
        let said = rest.filter(|(name, _)| !REPEATED.contains(name));
        said.filter_map(|(name, json)| Some((name.to_owned(), serde_json::from_str(json.get()).ok()?))).collect()
    }
}

/// True if the model refused to answer, and said nothing else.
fn only_refuses(message: &AssistantMessage) -> bool {
    let is_refusal = |block: &Block| match block {
        Block::Other(raw) => super::read::kind(raw.raw_value()).0 == "refusal",
        _ => false,
    };
    !message.has_text() && message.blocks().iter().any(is_refusal)
}

/// The error in an object that is one, or holds one.
pub(super) fn provider_error(json: &str, origin: &Origin) -> Error {
    let mut said: Value = serde_json::from_str(json).unwrap_or_default();
    if let Some(fields) = said.as_object_mut() {
        // The event's own type, which says no more than that there is an error.
        fields.remove("type");
    }
    ProviderError::from_json(&said).into_error(origin.provider())
}
