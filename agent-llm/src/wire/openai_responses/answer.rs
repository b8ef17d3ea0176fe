//! Decoding of answers. A non-streamed answer equals the last event of a stream.

use std::sync::Arc;

use agent_core::{
    AssistantMessage, Chunk, Error, ErrorKind, FinishReason, ModelResponse, Result, Retry,
    message::{Origin, Raw},
};
use serde::de::IgnoredAny;
use serde_json::{Map, Value, value::RawValue};

use super::{
    fold::{Field, Fold, Place},
    read::{items, read},
};
use crate::{
    Decoder, Progress, ProviderError,
    error::{not_the_protocol, truncated},
    wire::{
        ended::{message, only_refuses},
        lenient::{self, Count, Str, lenient, text},
        open_struct::open_struct,
        surrogates::mend_surrogates,
        usage,
    },
};

open_struct! {
    /// Known fields of an event.
    Event {
        kind: Str<'a> = "type",
        response: &'a RawValue = "response",
        item: &'a RawValue = "item",
        part: &'a RawValue = "part",
        error: &'a RawValue = "error",
        item_id: Str<'a> = "item_id",
        index: Count = "output_index",
        nth: Count = "content_index" | "summary_index",
        // Text in the events that are decoded.
        delta: &'a RawValue = "delta",
        whole: &'a RawValue = "text" | "refusal" | "arguments" | "input",
        _of_no_interest: IgnoredAny = "sequence_number" | "logprobs" | "obfuscation",
    }
}

open_struct! {
    /// A response, whole or in an event.
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

/// Fields of a response that repeat the request, or the message.
const REPEATED: &str = "background frequency_penalty include input instructions max_output_tokens max_tool_calls metadata \
    output_text parallel_tool_calls presence_penalty previous_response_id prompt prompt_cache_key prompt_cache_options \
    prompt_cache_retention reasoning safety_identifier store temperature text tool_choice tools top_logprobs top_p \
    truncation user";

/// Decoder of one streamed answer.
#[derive(Debug)]
pub(super) struct Answer {
    origin: Origin,
    fold: Fold,
    id: Option<Arc<str>>,
    model: Option<Arc<str>>,
    /// The whole answer, once its last event has arrived.
    ended: Option<ModelResponse>,
}

/// Decodes the body of a non-streamed answer.
pub(super) fn decode(body: &str, origin: &Origin) -> Result<ModelResponse> {
    let unreadable = || not_the_protocol(origin.provider(), "the answer is no response", body);
    let said: ResponseSaid<'_> = serde_json::from_str(body).map_err(|e| unreadable().with_source(e))?;
    let is_response = match said.output {
        Some(output) => output.get().starts_with('['),
        None => said.status.is_some(),
    };
    if !is_response && !said.is_error() {
        return Err(unreadable());
    }
    Answer::new(origin.clone(), false).respond(&said, body, &mut Vec::new())
}

impl Answer {
    pub(super) fn new(origin: Origin, is_heard: bool) -> Self {
        let fold = Fold::new(origin.clone(), is_heard);
        Self { origin, fold, id: None, model: None, ended: None }
    }

    fn event(&mut self, event: Event<'_>, data: &str, chunks: &mut Vec<Chunk>) -> Result<()> {
        let kind = text(&event.kind);
        let index = event.index.map(|index| index.0);
        let place = Place { index, id: text(&event.item_id), nth: event.nth.unwrap_or_default().0 };
        if let Some((of, way)) = kind.rsplit_once('.')
            && let Some(field) = Field::of(of)
        {
            match (way, event.delta, event.whole) {
                ("delta", Some(more), _) => self.fold.more(place, field, &lenient::<Str<'_>>(more), chunks),
                ("done", _, Some(whole)) => self.fold.whole(place, field, &lenient::<Str<'_>>(whole), chunks),
                _ => {}
            }
            return Ok(());
        }
        let failed = || provider_error(event.response.map_or(data, RawValue::get), &self.origin);
        let json = event.response.map_or("{}", RawValue::get);
        match (kind, event.item, event.part) {
            ("response.output_item.added", Some(item), _) => self.fold.added(place, item, chunks),
            ("response.output_item.done", Some(item), _) => {
                self.fold.done(place, item, self.id.as_deref().unwrap_or_default(), chunks);
            }
            ("response.content_part.done", _, Some(part)) => self.fold.part_done(place, part),
            ("error" | "response.failed" | "response.error", ..) => return Err(failed()),
            ("", ..) if event.error.is_some() => return Err(failed()),
            ("response.completed" | "response.incomplete" | "response.cancelled" | "response.done", ..) => {
                let mut said: ResponseSaid<'_> = serde_json::from_str(json).map_err(|e| self.unreadable(data, e))?;
                said.rest.extend(event.rest);
                self.ended = Some(self.respond(&said, json, chunks)?);
            }
            _ => self.head(&serde_json::from_str(json).unwrap_or_default()),
        }
        Ok(())
    }

    /// Keeps the fields known from the start.
    fn head(&mut self, said: &ResponseSaid<'_>) {
        if let Some(id) = said.id.as_deref().filter(|id| !id.is_empty()) {
            self.id = Some(id.into());
        }
        if let Some(model) = said.model.as_deref().filter(|model| !model.is_empty()) {
            self.model = Some(self.origin.answered_by(model));
        }
    }

    /// Builds the response that ends with `said`, decoded from `json`.
    fn respond(&mut self, said: &ResponseSaid<'_>, json: &str, chunks: &mut Vec<Chunk>) -> Result<ModelResponse> {
        if said.is_error() {
            return Err(provider_error(json, &self.origin));
        }
        if let Some(status @ ("queued" | "in_progress")) = said.status.as_deref() {
            let message =
                format!("the answer is {status}: answers in the background are not awaited, leave out `background`");
            let error = Error::new(ErrorKind::InvalidRequest, message).with_retry(Retry::Permanent);
            return Err(error.with_context("provider", self.origin.provider()));
        }
        self.head(said);
        let origin = self.origin.clone();
        let fold = std::mem::replace(&mut self.fold, Fold::new(origin.clone(), false));
        // At the end some servers repeat all items, some only a part of them, and some none.
        let whole = said.output.filter(|output| {
            let count = items(output.get()).len();
            count > 0 && count >= fold.len()
        });
        let output = whole.map_or_else(|| fold.output(), RawValue::to_owned);
        let blocks = items(output.get()).into_iter().flat_map(|item| read(item, &origin)).collect();
        let name = self.id.as_deref().unwrap_or_default();
        let message = message(blocks, name, Raw::new(origin, output), |blocks| fold.finish(blocks, chunks));
        let finish = said.finish(&message);
        let mut response = ModelResponse::new(message).with_finish(finish);
        (response.model, response.id, response.details) = (self.model.take(), self.id.take(), said.details());
        said.usage.into_iter().for_each(|said| usage::read(said, &mut response));
        Ok(response)
    }

    fn unreadable(&self, data: &str, e: serde_json::Error) -> Error {
        not_the_protocol(self.origin.provider(), "an event of the stream is not one of a response", data).with_source(e)
    }
}

impl ResponseSaid<'_> {
    /// Returns true if the response reports a failure.
    fn is_error(&self) -> bool {
        self.error.is_some() || self.status.as_deref() == Some("failed")
    }

    fn finish(&self, message: &AssistantMessage) -> FinishReason {
        let incomplete: Value = lenient::part(self.incomplete);
        match (text(&self.status), incomplete["reason"].as_str()) {
            ("incomplete", Some("max_output_tokens" | "max_tokens" | "length")) => FinishReason::Length,
            ("incomplete", Some("content_filter")) => FinishReason::ContentFilter,
            ("incomplete", Some(other)) => FinishReason::Other(other.to_owned()),
            ("" | "completed" | "complete", _) if message.has_calls() => FinishReason::ToolCalls,
            ("" | "completed" | "complete", _) if only_refuses(message) => FinishReason::ContentFilter,
            ("" | "completed" | "complete", _) => FinishReason::Stop,
            (status, _) => FinishReason::Other(status.to_owned()),
        }
    }

    /// Returns all other fields.
    fn details(&self) -> Map<String, Value> {
        let said = self.rest.iter().filter(|(name, _)| !REPEATED.split(' ').any(|known| *known == **name));
        said.filter_map(|(name, json)| Some((name.to_string(), serde_json::from_str(json.get()).ok()?))).collect()
    }
}

/// Decodes an error object, or an object that contains one.
fn provider_error(json: &str, origin: &Origin) -> Error {
    let mut said: Value = serde_json::from_str(json).unwrap_or_default();
    if let Some(fields) = said.as_object_mut() {
        // The event's own type only says that there is an error.
        fields.remove("type");
    }
    ProviderError::from_json(&said).into_error(origin.provider())
}

impl Decoder for Answer {
    fn frame(&mut self, data: &str, chunks: &mut Vec<Chunk>) -> Result<()> {
        let data = data.trim();
        if self.ended.is_some() || data.is_empty() || data == "[DONE]" {
            return Ok(());
        }
        let data = &*mend_surrogates(data);
        let event = serde_json::from_str(data).map_err(|e| self.unreadable(data, e))?;
        self.event(event, data, chunks)
    }

    fn progress(&self) -> Progress {
        if self.ended.is_some() { Progress::Ended } else { Progress::Open }
    }

    fn finish(self: Box<Self>, _: &mut Vec<Chunk>) -> Result<ModelResponse> {
        self.ended.ok_or_else(|| truncated(self.origin.provider()))
    }
}
