//! An answer under way.

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
        message: Start<'a> = "message",
        usage: &'a RawValue = "usage",
        error: &'a RawValue = "error",
    }
}

open_struct! {
    /// The message as it begins: empty.
    Start {
        _kind: &'a RawValue = "type",
        _role: &'a RawValue = "role",
        _content: &'a RawValue = "content",
        id: Str<'a> = "id",
        model: Str<'a> = "model",
        usage: &'a RawValue = "usage",
        stop_reason: Str<'a> = "stop_reason",
    }
}

/// Reads one streamed answer.
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
                self.start(frame.message);
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

    fn start(&mut self, message: Option<Start<'_>>) {
        let Some(message) = message.filter(|_| !std::mem::replace(&mut self.begun, true)) else { return };
        self.about.keep(&message.rest);
        if let Some(usage) = message.usage {
            self.about.used(usage);
        }
        self.about.stopped(message.stop_reason.as_ref().map_or("", |reason| &reason.0));
        (self.about.id, self.about.model) = (owned(message.id), owned(message.model));
        self.fold.response.clone_from(&self.about.id);
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
        let blocks = self.fold.finish(chunks);
        Ok(respond(blocks.into_iter(), self.about, &self.origin))
    }
}
