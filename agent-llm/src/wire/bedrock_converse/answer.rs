//! Decoding of answers. A non-streamed answer is a single event.

use agent_core::{
    AssistantMessage, Chunk, ModelResponse, Result, Usage,
    message::{Origin, Raw},
};
use serde_json::{Map, Value, value::RawValue};

use super::{draft::Delta, messages::Converse, usage::usage};
use crate::{
    Progress,
    error::{not_the_protocol, refused},
    wire::{
        alternating_roles::{
            finish,
            fold::{Draft, Fold},
        },
        events,
        lenient::Str,
        open_struct::open_struct,
    },
};

/// Padding that makes events equally long.
const PADDING: &str = "p";

open_struct! {
    /// An event, by its type; or the body of an answer.
    Frame {
        start: Part<'a> = "contentBlockStart",
        delta: Part<'a> = "contentBlockDelta",
        stop: Part<'a> = "contentBlockStop",
        _began: &'a RawValue = "messageStart",
        ended: About<'a> = "messageStop",
        metadata: About<'a> = "metadata",
        output: Output<'a> = "output",
        stop_reason: Str<'a> = "stopReason",
        usage: &'a RawValue = "usage",
        error: &'a RawValue = "error" | "__type",
    }
}

open_struct! {
    /// Fields of a block.
    Part {
        index: u64 = "contentBlockIndex",
        start: Map<String, Value> = "start",
        delta: Delta<'a> = "delta",
    }
}

open_struct! {
    /// Fields alongside the content.
    About { stop_reason: Str<'a> = "stopReason", usage: &'a RawValue = "usage", }
}

open_struct! {
    Output { message: &'a RawValue = "message", }
}

open_struct! {
    MessageSaid { _role: &'a RawValue = "role", content: Vec<&'a RawValue> = "content", }
}

/// Decoder of one answer.
#[derive(Debug)]
pub(super) struct Answer {
    fold: Fold<Converse>,
    /// The message, if not streamed, and its number of blocks.
    whole: Option<(Box<RawValue>, usize)>,
    stop_reason: String,
    usage: Usage,
    details: Map<String, Value>,
    has_ended: bool,
}

/// Decodes the body of a non-streamed answer.
pub(super) fn decode(body: &str, origin: &Origin) -> Result<ModelResponse> {
    let (mut answer, mut nobody) = (Answer::new(origin.clone(), false), Vec::new());
    events::Answer::event(&mut answer, body, &mut nobody)?;
    match answer.whole {
        Some(_) => events::Answer::respond(answer, &mut nobody),
        None => Err(not_the_protocol(origin.provider(), "the answer is not a message", body)),
    }
}

impl Answer {
    pub(super) fn new(origin: Origin, is_heard: bool) -> Self {
        let (stop_reason, usage, details) = (String::new(), Usage::default(), Map::new());
        Self { fold: Fold::new(origin, is_heard), whole: None, stop_reason, usage, details, has_ended: false }
    }

    fn take(&mut self, frame: Frame<'_>, chunks: &mut Vec<Chunk>) -> serde_json::Result<()> {
        if let Some(Part { index, start, .. }) = frame.start {
            let Some((kind, fields)) = start.into_iter().flatten().next() else { return Ok(()) };
            let fields = if let Value::Object(fields) = fields { fields } else { Map::new() };
            self.fold.start(index, Draft::started(kind, fields), "", chunks);
        }
        if let Some(Part { index, delta: Some(delta), .. }) = frame.delta {
            self.fold.delta(index, &delta, chunks)?;
        }
        if let Some(Part { index, .. }) = frame.stop {
            self.fold.stop(index, chunks);
        }
        if let Some(Output { message: Some(message), .. }) = frame.output {
            self.message(message, chunks)?;
        }
        self.about(&About { stop_reason: frame.stop_reason, usage: frame.usage, rest: frame.rest });
        frame.ended.iter().for_each(|about| self.about(about));
        if let Some(about) = &frame.metadata {
            self.about(about);
        }
        // Metadata is the last event; a whole message is complete.
        self.has_ended |= self.whole.is_some() || (frame.metadata.is_some() && !self.stop_reason.is_empty());
        Ok(())
    }

    fn message(&mut self, json: &RawValue, chunks: &mut Vec<Chunk>) -> serde_json::Result<()> {
        let said: MessageSaid<'_> = serde_json::from_str(json.get())?;
        let content = said.content.unwrap_or_default();
        content.iter().for_each(|block| self.fold.put(block, chunks));
        self.whole = Some((json.to_owned(), content.len()));
        Ok(())
    }

    /// Keeps these fields; newer values replace older ones.
    fn about(&mut self, about: &About<'_>) {
        if let Some(reason) = about.stop_reason.as_ref().filter(|reason| !reason.is_empty()) {
            self.stop_reason = reason.0.to_string();
            self.details.insert("stopReason".into(), self.stop_reason.as_str().into());
        }
        if let Some(json) = about.usage {
            let said = serde_json::from_str(json.get()).unwrap_or_default();
            self.usage = usage(&said);
            self.details.insert("usage".into(), said);
        }
        for (name, json) in about.rest.iter().filter(|(name, _)| name.0 != PADDING) {
            if let Ok(value) = serde_json::from_str(json.get()) {
                self.details.insert(name.0.to_string(), value);
            }
        }
    }
}

impl events::Answer for Answer {
    const UNREADABLE: &'static str = "what came is not of an answer";

    fn origin(&self) -> &Origin {
        &self.fold.origin
    }

    fn event(&mut self, json: &str, chunks: &mut Vec<Chunk>) -> Result<()> {
        let frame: Frame<'_> = serde_json::from_str(json).map_err(|e| self.unreadable(json).with_source(e))?;
        if frame.error.is_some() {
            return Err(refused(self.origin().provider(), json));
        }
        self.take(frame, chunks).map_err(|e| self.unreadable(json).with_source(e))
    }

    fn progress(&self) -> Progress {
        match (self.has_ended, self.stop_reason.is_empty()) {
            (true, _) => Progress::Ended,
            (false, false) => Progress::Complete,
            (false, true) => Progress::Open,
        }
    }

    fn respond(self, chunks: &mut Vec<Chunk>) -> Result<ModelResponse> {
        let origin = self.fold.origin.clone();
        let (json, blocks) = self.fold.finish(chunks);
        let json = match self.whole {
            Some((message, said)) if said == blocks.len() => message,
            _ => json,
        };
        let message = AssistantMessage::from_provider(blocks, Raw::new(origin, json));
        let finish = finish(&self.stop_reason, &message);
        let mut response = ModelResponse::new(message).with_finish(finish).with_usage(self.usage);
        response.details = self.details;
        Ok(response)
    }
}
