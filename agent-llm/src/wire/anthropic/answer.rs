//! An answer under way. One that came whole is a message that begins with all that it says.

use agent_core::{
    AssistantMessage, Chunk, Error, FinishReason, ModelResponse, Result,
    message::{Origin, Raw},
};
use serde_json::{Map, Value, json, value::RawValue};

use super::{
    draft::{Block, Delta},
    usage,
};
use crate::{
    Decoder, Progress,
    error::{not_the_protocol, refused, truncated},
    wire::{
        lenient::{Str, owned, text},
        open_struct::open_struct,
        surrogates::mend_surrogates,
        two_roles::fold::Fold,
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
        return Err(refused(origin.provider(), body));
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
    fold: Fold<Block>,
    model: Option<String>,
    /// What is said of the answer beside its content. Of what is said again the newer holds.
    details: Map<String, Value>,
    has_begun: bool,
    has_ended: bool,
}

impl Answer {
    pub(super) fn new(origin: Origin, is_heard: bool) -> Self {
        let fold = Fold::new(origin.clone(), is_heard);
        Self { origin, fold, model: None, details: Map::new(), has_begun: false, has_ended: false }
    }

    fn event(&mut self, frame: Frame<'_>, chunks: &mut Vec<Chunk>) -> serde_json::Result<()> {
        match text(&frame.kind) {
            "content_block_delta" => {
                if let Some(delta) = &frame.delta {
                    self.fold.delta(frame.index, delta, chunks)?;
                }
            }
            "content_block_start" => {
                if let Some(json) = frame.content_block {
                    let (block, said) = Block::started(json.get())?;
                    self.fold.start(frame.index, block, &said, chunks);
                }
            }
            "content_block_stop" => self.fold.stop(frame.index, chunks),
            "message_start" => frame.message.into_iter().for_each(|message| self.start(message)),
            "message_delta" | "message_stop" => {
                self.keep(&frame.rest, frame.usage, &None);
                if let Some(delta) = frame.delta {
                    self.keep(&delta.rest, None, &delta.stop_reason);
                }
            }
            _ => {} // a ping, or an event of a kind that is yet to come
        }
        Ok(())
    }

    fn start(&mut self, message: MessageSaid<'_>) {
        if !std::mem::replace(&mut self.has_begun, true) {
            self.keep(&message.rest, message.usage, &message.stop_reason);
            self.model = owned(message.model);
            self.fold.response = owned(message.id).unwrap_or_default();
        }
    }

    /// Keeps what is said beside the content. One answer may say several times what it used.
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

    /// Why the answer ends; nothing if it has not said that.
    fn stop_reason(&self) -> &str {
        self.details.get("stop_reason").and_then(Value::as_str).unwrap_or_default()
    }

    fn respond(self, chunks: &mut Vec<Chunk>) -> ModelResponse {
        let stop_reason = self.stop_reason().to_owned();
        let id = Some(self.fold.response.clone()).filter(|id| !id.is_empty());
        let (json, blocks) = self.fold.finish(chunks);
        let json = format!(r#"{{"role":"assistant","content":[{}]}}"#, json.join(","));
        let raw = Raw::parse(self.origin.clone(), json).expect("it was just read as JSON");
        let message = AssistantMessage::from_provider(blocks, raw);
        let finish = match stop_reason.as_str() {
            "" | "end_turn" | "tool_use" if message.has_calls() => FinishReason::ToolCalls,
            "tool_use" => FinishReason::ToolCalls,
            "" | "end_turn" | "stop_sequence" => FinishReason::Stop,
            "max_tokens" | "model_context_window_exceeded" => FinishReason::Length,
            "refusal" => FinishReason::ContentFilter,
            "pause_turn" => FinishReason::Paused,
            other => FinishReason::Other(other.to_owned()),
        };
        let usage = self.details.get("usage").filter(|said| said.is_object()).map(usage::usage).unwrap_or_default();
        let mut response = ModelResponse::new(message).with_finish(finish).with_usage(usage);
        response.id = id.map(Into::into);
        response.model = self.model.map(|model| self.origin.answered_by(&model));
        response.details = self.details;
        response
    }

    fn unreadable(&self, data: &str) -> Error {
        not_the_protocol(self.origin.provider(), "an event of the stream is not of a message", data)
    }
}

impl Decoder for Answer {
    fn frame(&mut self, data: &str, chunks: &mut Vec<Chunk>) -> Result<()> {
        let data = data.trim();
        self.has_ended |= data == "[DONE]"; // gateways add it
        if self.has_ended || data.is_empty() {
            return Ok(());
        }
        let data = &*mend_surrogates(data);
        let frame: Frame<'_> = serde_json::from_str(data).map_err(|e| self.unreadable(data).with_source(e))?;
        if frame.error.is_some() {
            return Err(refused(self.origin.provider(), data));
        }
        if frame.kind.is_none() {
            return Err(self.unreadable(data));
        }
        let ends = text(&frame.kind) == "message_stop";
        self.event(frame, chunks).map_err(|e| self.unreadable(data).with_source(e))?;
        self.has_ended |= ends;
        Ok(())
    }

    fn progress(&self) -> Progress {
        match (self.has_ended, self.stop_reason()) {
            (true, _) => Progress::Ended,
            (false, "") => Progress::Open,
            (false, _) => Progress::Complete,
        }
    }

    fn finish(self: Box<Self>, chunks: &mut Vec<Chunk>) -> Result<ModelResponse> {
        if self.progress() == Progress::Open {
            return Err(truncated(self.origin.provider()));
        }
        if !self.has_begun && self.fold.is_empty() && self.stop_reason().is_empty() {
            return Err(not_the_protocol(self.origin.provider(), "the stream held no answer", ""));
        }
        Ok(self.respond(chunks))
    }
}
