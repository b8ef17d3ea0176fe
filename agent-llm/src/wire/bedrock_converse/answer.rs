//! An answer under way. One that came whole is one event.

use agent_core::{
    AssistantMessage, Chunk, FinishReason, ModelResponse, Result, Usage,
    message::{Origin, Raw},
};
use serde_json::{Map, Value, value::RawValue};

use super::{
    draft::{Block, Delta},
    usage::usage,
};
use crate::{
    Decoder, Progress,
    error::{not_the_protocol, refused, truncated},
    wire::{lenient::Str, open_struct::open_struct, surrogates::mend_surrogates, two_roles::fold::Fold},
};

/// Bytes that only make events equally long.
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
    /// What is said of a block.
    Part {
        index: u64 = "contentBlockIndex",
        start: Map<String, Value> = "start",
        delta: Delta<'a> = "delta",
    }
}

open_struct! {
    /// What is said beside the content.
    About { stop_reason: Str<'a> = "stopReason", usage: &'a RawValue = "usage", }
}

open_struct! {
    Output { message: &'a RawValue = "message", }
}

open_struct! {
    MessageSaid { _role: &'a RawValue = "role", content: Vec<&'a RawValue> = "content", }
}

/// Reads one answer.
#[derive(Debug)]
pub(super) struct Answer {
    origin: Origin,
    fold: Fold<Block>,
    /// The message, if it came whole, and how many blocks it has.
    whole: Option<(String, usize)>,
    stop_reason: String,
    usage: Usage,
    details: Map<String, Value>,
    has_ended: bool,
}

/// Reads the body of an answer that came whole.
pub(super) fn decode(body: &str, origin: &Origin) -> Result<ModelResponse> {
    let (mut answer, mut nobody) = (Box::new(Answer::new(origin.clone(), false)), Vec::new());
    answer.frame(body, &mut nobody)?;
    match answer.whole {
        Some(_) => answer.finish(&mut nobody),
        None => Err(not_the_protocol(origin.provider(), "the answer is not a message", body)),
    }
}

impl Decoder for Answer {
    fn frame(&mut self, data: &str, chunks: &mut Vec<Chunk>) -> Result<()> {
        if self.has_ended || data.trim().is_empty() {
            return Ok(());
        }
        let data = &*mend_surrogates(data);
        let unreadable = |e, origin: &Origin| {
            not_the_protocol(origin.provider(), "what came is not of an answer", data).with_source(e)
        };
        let frame: Frame<'_> = serde_json::from_str(data).map_err(|e| unreadable(e, &self.origin))?;
        if frame.error.is_some() {
            return Err(refused(self.origin.provider(), data));
        }
        self.event(frame, chunks).map_err(|e| unreadable(e, &self.origin))
    }

    fn progress(&self) -> Progress {
        match (self.has_ended, self.stop_reason.is_empty()) {
            (true, _) => Progress::Ended,
            (false, false) => Progress::Complete,
            (false, true) => Progress::Open,
        }
    }

    fn finish(self: Box<Self>, chunks: &mut Vec<Chunk>) -> Result<ModelResponse> {
        match self.progress() {
            Progress::Open => Err(truncated(self.origin.provider())),
            _ => Ok(self.respond(chunks)),
        }
    }
}

impl Answer {
    pub(super) fn new(origin: Origin, is_heard: bool) -> Self {
        let fold = Fold::new(origin.clone(), is_heard);
        let (stop_reason, usage, details) = (String::new(), Usage::default(), Map::new());
        Self { origin, fold, whole: None, stop_reason, usage, details, has_ended: false }
    }

    fn event(&mut self, frame: Frame<'_>, chunks: &mut Vec<Chunk>) -> serde_json::Result<()> {
        if let Some(Part { index, start, .. }) = frame.start {
            let Some((kind, fields)) = start.into_iter().flatten().next() else { return Ok(()) };
            let fields = if let Value::Object(fields) = fields { fields } else { Map::new() };
            self.fold.start(index, Block::started(&kind, fields), "", chunks);
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
        // Metadata is the last event, and a whole message all of it.
        self.has_ended |= self.whole.is_some() || (frame.metadata.is_some() && !self.stop_reason.is_empty());
        Ok(())
    }

    fn message(&mut self, json: &RawValue, chunks: &mut Vec<Chunk>) -> serde_json::Result<()> {
        let said: MessageSaid<'_> = serde_json::from_str(json.get())?;
        let content = said.content.unwrap_or_default();
        content.iter().for_each(|block| self.fold.put(block.get(), chunks));
        self.whole = Some((json.get().to_owned(), content.len()));
        Ok(())
    }

    /// Keeps what is said; the newer holds.
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

    fn respond(self, chunks: &mut Vec<Chunk>) -> ModelResponse {
        let (json, blocks) = self.fold.finish(chunks);
        let json = match self.whole {
            Some((message, said)) if said == blocks.len() => message,
            _ => format!(r#"{{"role":"assistant","content":[{}]}}"#, json.join(",")),
        };
        let raw = Raw::parse(self.origin, json).expect("it was just read as JSON");
        let message = AssistantMessage::from_provider(blocks, raw);
        let finish = match self.stop_reason.as_str() {
            "" | "end_turn" | "tool_use" if message.has_calls() => FinishReason::ToolCalls,
            "tool_use" => FinishReason::ToolCalls,
            "" | "end_turn" | "stop_sequence" => FinishReason::Stop,
            "max_tokens" | "model_context_window_exceeded" => FinishReason::Length,
            "guardrail_intervened" | "content_filtered" => FinishReason::ContentFilter,
            other => FinishReason::Other(other.to_owned()),
        };
        let mut response = ModelResponse::new(message).with_finish(finish).with_usage(self.usage);
        response.details = self.details;
        response
    }
}
