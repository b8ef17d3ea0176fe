//! Decoding of answers. A non-streamed answer is a single event.

use std::sync::Arc;

use agent_core::{
    Chunk, Error, ModelResponse, Result,
    message::{Origin, Raw},
};
use serde_json::{Value, json, value::RawValue};

use super::{
    citations::cite,
    events::{Delta, Frame},
    fold::Fold,
    usage,
};
use crate::{
    Progress, ProviderError,
    error::not_the_protocol,
    wire::{
        details::{Details, parse},
        ended::message,
        events,
        openai_chat::read::{ORDER, answered, read},
    },
};

/// Decoder of an answer.
#[derive(Debug)]
pub(super) struct Answer {
    origin: Origin,
    fold: Fold,
    /// The message, if not streamed.
    whole: Option<Box<RawValue>>,
    id: Option<Arc<str>>,
    finish: String,
    usage: Option<Box<RawValue>>,
    details: Details,
    has_ended: bool,
}

/// Decodes the body of a non-streamed answer.
pub(super) fn decode(body: &str, origin: &Origin) -> Result<ModelResponse> {
    let mut answer = Answer::new(origin.clone(), false);
    let frame = answer.read(body)?;
    let Some(message) = frame.message else { return Err(events::Answer::unreadable(&answer, body)) };
    answer.whole = Some(message.to_owned());
    let Frame { id, finish_reason, usage, logprobs, rest, .. } = frame;
    answer.id = id.map(|id| id.0.into());
    answer.end(Delta { finish_reason, usage, rest, ..Delta::default() });
    logprobs.into_iter().for_each(|json| answer.details.append("logprobs", json));
    events::Answer::respond(answer, &mut Vec::new())
}

impl Answer {
    pub(super) fn new(origin: Origin, is_heard: bool) -> Self {
        Self {
            origin,
            fold: Fold::new(is_heard),
            whole: None,
            id: None,
            finish: String::new(),
            usage: None,
            details: Details::default(),
            has_ended: false,
        }
    }

    /// Parses an answer or an event.
    fn read<'a>(&self, json: &'a str) -> Result<Frame<'a>> {
        let unreadable = |e| events::Answer::unreadable(self, json).with_source(e);
        let frame: Frame<'_> = serde_json::from_str(json).map_err(unreadable)?;
        if frame.is_error() { Err(self.failed(json)) } else { Ok(frame) }
    }

    /// Builds the error from an object in place of an answer, or in the middle of one.
    fn failed(&self, json: &str) -> Error {
        let said: Value = serde_json::from_str(json).unwrap_or_default();
        let why = said.pointer("/delta/error").unwrap_or(&Value::Null);
        let error = match (said["finish_reason"] == "ERROR", why) {
            (true, _) => json!({"error": "the model failed"}),
            (false, Value::Null) if said["delta"].is_object() => json!({"error": "the model failed"}),
            (false, Value::Null) => said,
            (false, why) => json!({"error": why}),
        };
        ProviderError::from_json(&error).into_error(self.origin.provider())
    }

    /// Handles the fields at the end of an answer.
    fn end(&mut self, end: Delta<'_>) {
        self.finish = end.finish_reason.map(|reason| reason.0.into_owned()).unwrap_or_default();
        self.usage = end.usage.map(ToOwned::to_owned);
        end.rest.iter().for_each(|(name, json)| self.details.add(&name.0, json));
    }
}

impl events::Answer for Answer {
    const UNREADABLE: &'static str = "the answer is not one of Cohere's Chat";

    fn origin(&self) -> &Origin {
        &self.origin
    }

    fn event(&mut self, json: &str, out: &mut Vec<Chunk>) -> Result<()> {
        let Frame { kind, index, id, delta, logprobs, .. } = self.read(json)?;
        if let (None, Some(id)) = (&self.id, id.filter(|id| !id.is_empty())) {
            self.id = Some(id.0.into());
        }
        logprobs.into_iter().for_each(|json| self.details.append("logprobs", json));
        let (kind, delta) = (kind.unwrap_or_default().0, delta.unwrap_or_default());
        if let Some(message) = delta.message.and_then(parse) {
            self.fold.push(&kind, index.unwrap_or(0), message, out);
        }
        if kind == "message-end" {
            self.has_ended = true;
            self.end(delta);
        }
        Ok(())
    }

    fn progress(&self) -> Progress {
        if self.has_ended { Progress::Ended } else { Progress::Open }
    }

    fn respond(self, out: &mut Vec<Chunk>) -> Result<ModelResponse> {
        let Self { origin, fold, whole, id, finish, usage, details, .. } = self;
        let unreadable = |e| not_the_protocol(origin.provider(), Self::UNREADABLE, "").with_source(e);
        let json = whole.map_or_else(|| fold.json(), Ok).map_err(unreadable)?;
        let name = id.as_deref().unwrap_or_default();
        let mut blocks = read(&json, &origin, ORDER).map_err(unreadable)?;
        cite(&json, &mut blocks);
        let message = message(blocks, name, Raw::new(origin, json), |blocks| fold.finish(blocks, out));
        let mut response = answered(message, in_chat(&finish));
        response.details = details.into_fields(&Details::default());
        if let Some(json) = usage {
            usage::read(&json, &mut response);
        }
        response.id = id;
        Ok(response)
    }
}

/// Maps a finish reason to that of Chat Completions.
fn in_chat(reason: &str) -> &str {
    match reason {
        "COMPLETE" | "STOP_SEQUENCE" => "stop",
        "TOOL_CALL" => "tool_calls",
        "MAX_TOKENS" => "length",
        "ERROR_TOXIC" => "content_filter",
        other => other,
    }
}
