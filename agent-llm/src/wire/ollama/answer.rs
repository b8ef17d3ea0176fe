//! Decoding of answers. A non-streamed answer is a single event.

use std::sync::Arc;

use agent_core::{Chunk, FinishReason, ModelResponse, Result, Usage, message::Origin};
use serde_json::value::RawValue;

use super::fold::Fold;
use crate::{
    Progress,
    error::refused,
    wire::{
        details::Details,
        events,
        lenient::{Count, Str},
        open_struct::open_struct,
    },
};

open_struct! {
    /// An answer, or an event of one.
    Frame {
        model: Str<'a> = "model",
        created_at: &'a RawValue = "created_at",
        message: &'a RawValue = "message",
        done: bool = "done",
        done_reason: Str<'a> = "done_reason",
        prompt_eval_count: Count = "prompt_eval_count",
        eval_count: Count = "eval_count",
        logprobs: &'a RawValue = "logprobs",
        error: &'a RawValue = "error",
    }
}

/// Decoder of an answer.
#[derive(Debug)]
pub(super) struct Answer {
    message: Fold,
    said: Said,
}

/// Fields of an answer.
#[derive(Debug, Default)]
struct Said {
    /// The message, if it came in one piece.
    whole: Option<Box<RawValue>>,
    /// Name of the answer: the creation time of its first event.
    name: Option<String>,
    model: Option<Arc<str>>,
    finish: String,
    usage: Usage,
    details: Details,
    has_ended: bool,
}

/// Decodes the body of a non-streamed answer.
pub(super) fn decode(body: &str, origin: &Origin) -> Result<ModelResponse> {
    let mut answer = Answer::new(origin.clone(), false);
    events::Answer::event(&mut answer, body, &mut Vec::new())?;
    match answer.said.whole {
        Some(_) => events::Answer::respond(answer, &mut Vec::new()),
        None => Err(events::Answer::unreadable(&answer, body)),
    }
}

impl Answer {
    pub(super) fn new(origin: Origin, is_heard: bool) -> Self {
        Self { message: Fold::new(origin, is_heard), said: Said::default() }
    }
}

impl events::Answer for Answer {
    const UNREADABLE: &'static str = "the answer is not one of Ollama's chat";

    fn origin(&self) -> &Origin {
        &self.message.origin
    }

    fn event(&mut self, json: &str, out: &mut Vec<Chunk>) -> Result<()> {
        let frame: Frame<'_> = serde_json::from_str(json).map_err(|e| self.unreadable(json).with_source(e))?;
        if frame.error.is_some() {
            return Err(refused(self.origin().provider(), json));
        }
        let said = &mut self.said;
        if let Some(message) = frame.message {
            let at = frame.created_at.map_or("", RawValue::get);
            said.whole = said.name.is_none().then(|| message.to_owned());
            let name = said.name.get_or_insert_with(|| at.chars().filter(char::is_ascii_digit).collect());
            self.message.push(message, name, out).map_err(|e| self.unreadable(json).with_source(e))?;
        }
        let said = &mut self.said;
        if let (None, Some(model)) = (&said.model, frame.model.filter(|model| !model.is_empty())) {
            said.model = Some(self.message.origin.answered_by(&model.0));
        }
        frame.rest.iter().for_each(|(name, json)| said.details.add(&name.0, json));
        frame.logprobs.into_iter().for_each(|json| said.details.append("logprobs", json));
        if frame.done == Some(true) {
            frame.created_at.into_iter().for_each(|json| said.details.add("created_at", json));
            said.finish = frame.done_reason.unwrap_or_default().0.into_owned();
            let count = |count: Option<Count>| count.unwrap_or_default().0;
            said.usage = Usage::new(count(frame.prompt_eval_count), count(frame.eval_count));
            said.has_ended = true;
        }
        Ok(())
    }

    fn progress(&self) -> Progress {
        if self.said.has_ended { Progress::Ended } else { Progress::Open }
    }

    fn respond(self, out: &mut Vec<Chunk>) -> Result<ModelResponse> {
        let Self { message, said } = self;
        let json = said.whole.unwrap_or_else(|| message.json());
        let message = message.finish(json, out);
        let finish = match &*said.finish {
            "" | "stop" if message.has_calls() => FinishReason::ToolCalls,
            "" | "stop" => FinishReason::Stop,
            "length" => FinishReason::Length,
            other => FinishReason::Other(other.to_owned()),
        };
        let mut response = ModelResponse::new(message).with_finish(finish);
        (response.usage, response.model) = (said.usage, said.model);
        response.details = said.details.into_fields(&Details::default());
        Ok(response)
    }
}
