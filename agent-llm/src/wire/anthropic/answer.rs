//! An answer under way. One that came whole is a message that begins with all that it says.

use agent_core::{Chunk, Error, ModelResponse, Result, message::Origin};
use serde_json::value::RawValue;

use super::{
    block_fold::Delta,
    finish::{About, owned, provider_error, respond},
    fold::Fold,
};
use crate::{
    Decoder, Progress,
    error::{not_the_protocol, truncated},
    wire::{lenient::Str, open_struct::open_struct, surrogates::mend_surrogates},
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
    /// The message: in a stream as it begins, without its content.
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

/// Reads the body of an answer that came whole.
pub(super) fn decode(body: &str, origin: &Origin) -> Result<ModelResponse> {
    let unreadable = || not_the_protocol(origin.provider(), "the answer is not a message", body);
    let mut message: MessageSaid<'_> = serde_json::from_str(body).map_err(|e| unreadable().with_source(e))?;
    if message.error.is_some() {
        return Err(provider_error(body, origin));
    }
    let content = message.content.take().ok_or_else(unreadable)?;
    let (mut answer, mut nobody) = (Answer::new(origin.clone(), false), Vec::new());
    content.iter().for_each(|block| answer.fold.put(block.get(), &mut nobody));
    answer.start(message);
    Ok(answer.respond(&mut nobody))
}

/// Reads one answer.
#[derive(Debug)]
pub(super) struct Answer {
    origin: Origin,
    fold: Fold,
    about: About,
    begun: bool,
    ended: bool,
}

impl Answer {
    pub(super) fn new(origin: Origin, is_heard: bool) -> Self {
        let fold = Fold::new(origin.clone(), is_heard);
        Self { origin, fold, about: About::default(), begun: false, ended: false }
    }

    fn event(&mut self, frame: Frame<'_>, chunks: &mut Vec<Chunk>) -> serde_json::Result<()> {
        match frame.kind.as_ref().map_or("", |kind| &kind.0) {
            "content_block_delta" => match &frame.delta {
                Some(delta) => self.fold.delta(frame.index, delta, chunks),
                None => Ok(()),
            },
            "content_block_start" => match frame.content_block {
                Some(json) => self.fold.start(frame.index, json.get(), chunks),
                None => Ok(()),
            },
            "content_block_stop" => {
                self.fold.stop(frame.index, chunks);
                Ok(())
            }
            "message_start" => {
                frame.message.into_iter().for_each(|message| self.start(message));
                Ok(())
            }
            "message_delta" | "message_stop" => {
                self.about.keep(&frame.rest);
                if let Some(usage) = frame.usage {
                    self.about.used(usage);
                }
                if let Some(delta) = frame.delta {
                    self.about.keep(&delta.rest);
                    self.about.stopped(delta.stop_reason.as_ref().map_or("", |reason| &reason.0));
                }
                Ok(())
            }
            _ => Ok(()), // a ping, or an event of a kind that is yet to come
        }
    }

    fn start(&mut self, message: MessageSaid<'_>) {
        if std::mem::replace(&mut self.begun, true) {
            return;
        }
        self.about.keep(&message.rest);
        if let Some(usage) = message.usage {
            self.about.used(usage);
        }
        self.about.stopped(message.stop_reason.as_ref().map_or("", |reason| &reason.0));
        (self.about.id, self.about.model) = (owned(message.id), owned(message.model));
        self.fold.response.clone_from(&self.about.id);
    }

    fn respond(self, chunks: &mut Vec<Chunk>) -> ModelResponse {
        respond(self.fold.finish(chunks), self.about, &self.origin)
    }

    fn unreadable(&self, data: &str) -> Error {
        not_the_protocol(self.origin.provider(), "an event of the stream is not of a message", data)
    }
}

impl Decoder for Answer {
    fn frame(&mut self, data: &str, chunks: &mut Vec<Chunk>) -> Result<()> {
        let data = data.trim();
        if data == "[DONE]" {
            self.ended = true; // gateways add it
        }
        if self.ended || data.is_empty() {
            return Ok(());
        }
        let data = &*mend_surrogates(data);
        let frame: Frame<'_> = serde_json::from_str(data).map_err(|e| self.unreadable(data).with_source(e))?;
        if frame.error.is_some() {
            return Err(provider_error(data, &self.origin));
        }
        if frame.kind.is_none() {
            return Err(self.unreadable(data));
        }
        let ends = frame.kind.as_ref().is_some_and(|kind| kind.0 == "message_stop");
        self.event(frame, chunks).map_err(|e| self.unreadable(data).with_source(e))?;
        self.ended |= ends;
        Ok(())
    }

    fn progress(&self) -> Progress {
        match (self.ended, self.about.has_stopped()) {
            (true, _) => Progress::Ended,
            (false, true) => Progress::Complete,
            (false, false) => Progress::Open,
        }
    }

    fn finish(self: Box<Self>, chunks: &mut Vec<Chunk>) -> Result<ModelResponse> {
        if self.progress() == Progress::Open {
            return Err(truncated(self.origin.provider()));
        }
        if !self.begun && self.fold.is_empty() && !self.about.has_stopped() {
            return Err(not_the_protocol(self.origin.provider(), "the stream held no answer", ""));
        }
        Ok(self.respond(chunks))
    }
}
