//! Decoding of answers. A non-streamed answer is a message that begins complete.

use agent_core::{
    AssistantMessage, Chunk, ModelResponse, Result,
    message::{Origin, Raw},
};
use serde::de::Error as _;
use serde_json::{Map, Value, json, value::RawValue};

use super::{
    draft::{Delta, started},
    messages::Messages,
    usage,
};
use crate::{
    Progress,
    error::{not_the_protocol, refused},
    wire::{
        alternating_roles::{finish, fold::Fold},
        events,
        lenient::{Str, owned, text},
        open_struct::open_struct,
    },
};

open_struct! {
    Frame {
        kind: Str<'a> = "type",
        index: u64 = "index",
        delta: Delta<'a> = "delta",
        content_block: &'a RawValue = "content_block",
        message: MessageSaid<'a> = "message",
        usage: &'a RawValue = "usage",
        error: &'a RawValue = "error",
    }
}

open_struct! {
    /// Message; in a stream its beginning, without content.
    MessageSaid {
        _kind: &'a RawValue = "type",
        _role: &'a RawValue = "role",
        content: Vec<&'a RawValue> = "content",
        id: Str<'a> = "id",
        model: Str<'a> = "model",
        usage: &'a RawValue = "usage",
        stop_reason: Str<'a> = "stop_reason",
        error: &'a RawValue = "error",
    }
}

/// Decoder of one answer.
#[derive(Debug)]
pub(super) struct Answer {
    fold: Fold<Messages>,
    model: Option<String>,
    /// Fields of the answer alongside its content; newer values replace older ones.
    details: Map<String, Value>,
    has_begun: bool,
    has_ended: bool,
}

/// Decodes the body of a non-streamed answer.
pub(super) fn decode(body: &str, origin: &Origin) -> Result<ModelResponse> {
    let unreadable = || not_the_protocol(origin.provider(), "the answer is not a message", body);
    let mut message: MessageSaid<'_> = serde_json::from_str(body).map_err(|e| unreadable().with_source(e))?;
    if message.error.is_some() {
        return Err(refused(origin.provider(), body));
    }
    let content = message.content.take().ok_or_else(unreadable)?;
    let (mut answer, mut nobody) = (Answer::new(origin.clone(), false), Vec::new());
    content.iter().for_each(|block| answer.fold.put(block, &mut nobody));
    answer.start(message).map_err(|e| unreadable().with_source(e))?;
    events::Answer::respond(answer, &mut nobody)
}

impl Answer {
    pub(super) fn new(origin: Origin, is_heard: bool) -> Self {
        let fold = Fold::new(origin, is_heard);
        Self { fold, model: None, details: Map::new(), has_begun: false, has_ended: false }
    }

    fn take(&mut self, frame: Frame<'_>, chunks: &mut Vec<Chunk>) -> serde_json::Result<()> {
        match text(&frame.kind) {
            "content_block_delta" => {
                frame.delta.iter().try_for_each(|delta| self.fold.delta(frame.index, delta, chunks))?;
            }
            "content_block_start" => {
                if let Some((draft, said)) = frame.content_block.map(started).transpose()? {
                    self.fold.start(frame.index, draft, &said, chunks);
                }
            }
            "content_block_stop" => self.fold.stop(frame.index, chunks),
            "message_start" => frame.message.into_iter().try_for_each(|message| self.start(message))?,
            kind @ ("message_delta" | "message_stop") => {
                self.has_ended = kind == "message_stop";
                self.keep(&frame.rest, frame.usage, &None);
                if let Some(delta) = frame.delta {
                    self.keep(&delta.rest, None, &delta.stop_reason);
                }
            }
            _ => {} // a ping, or an unknown kind of event
        }
        Ok(())
    }

    /// Applies the head of the message. The same head may be repeated.
    ///
    /// # Errors
    /// If another message begins while this one is open: two answers were concatenated.
    fn start(&mut self, message: MessageSaid<'_>) -> serde_json::Result<()> {
        let id = owned(message.id).unwrap_or_default();
        if !std::mem::replace(&mut self.has_begun, true) {
            self.keep(&message.rest, message.usage, &message.stop_reason);
            self.model = owned(message.model);
            self.fold.response = id;
        } else if !id.is_empty() && !self.fold.response.is_empty() && id != self.fold.response {
            return Err(serde_json::Error::custom("another message begins before this one has ended"));
        }
        Ok(())
    }

    /// Keeps fields alongside the content. An answer may report its usage several times.
    fn keep(&mut self, rest: &[(Str<'_>, &RawValue)], usage: Option<&RawValue>, stop_reason: &Option<Str<'_>>) {
        for (name, json) in rest {
            if let Ok(value) = serde_json::from_str(json.get()) {
                self.details.insert(name.0.to_string(), value);
            }
        }
        if let Some(more) = usage.and_then(|json| serde_json::from_str(json.get()).ok())
            && let Value::Object(known) = self.details.entry("usage").or_insert_with(|| json!({}))
        {
            usage::merge(known, more);
        }
        if let Some(reason) = stop_reason.as_ref().filter(|reason| !reason.is_empty()) {
            self.details.insert("stop_reason".into(), (*reason.0).into());
        }
    }

    /// Returns the stop reason; empty while unknown.
    fn stop_reason(&self) -> &str {
        self.details.get("stop_reason").and_then(Value::as_str).unwrap_or_default()
    }
}

impl events::Answer for Answer {
    const UNREADABLE: &'static str = "an event of the stream is not of a message";

    fn origin(&self) -> &Origin {
        &self.fold.origin
    }

    fn event(&mut self, json: &str, chunks: &mut Vec<Chunk>) -> Result<()> {
        let frame: Frame<'_> = serde_json::from_str(json).map_err(|e| self.unreadable(json).with_source(e))?;
        if frame.error.is_some() {
            return Err(refused(self.origin().provider(), json));
        }
        if frame.kind.is_none() {
            return Err(self.unreadable(json));
        }
        self.take(frame, chunks).map_err(|e| self.unreadable(json).with_source(e))
    }

    fn end(&mut self) {
        self.has_ended = true;
    }

    fn progress(&self) -> Progress {
        match (self.has_ended, self.stop_reason()) {
            (true, _) => Progress::Ended,
            (false, "") => Progress::Open,
            (false, _) => Progress::Complete,
        }
    }

    fn respond(self, chunks: &mut Vec<Chunk>) -> Result<ModelResponse> {
        let Self { fold, model, details, has_begun, .. } = self;
        let origin = fold.origin.clone();
        let stop_reason = details.get("stop_reason").and_then(Value::as_str).unwrap_or_default();
        if !has_begun && fold.is_empty() && stop_reason.is_empty() {
            return Err(not_the_protocol(origin.provider(), "the stream held no answer", ""));
        }
        let id = Some(&*fold.response).filter(|id| !id.is_empty()).map(Into::into);
        let (json, blocks) = fold.finish(chunks);
        let message = AssistantMessage::from_provider(blocks, Raw::new(origin.clone(), json));
        let finish = finish(stop_reason, &message);
        let usage = details.get("usage").filter(|said| said.is_object()).map(usage::usage).unwrap_or_default();
        let mut response = ModelResponse::new(message).with_finish(finish).with_usage(usage);
        response.id = id;
        response.model = model.map(|model| origin.answered_by(&model));
        response.details = details;
        Ok(response)
    }
}
