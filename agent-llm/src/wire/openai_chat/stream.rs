//! Answers that are streamed.

use agent_core::{Chunk, Error, ModelResponse, Origin, Result, Usage};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{
    decode::{provider_error, respond},
    fold::{Delta, Fold},
    read::read,
    speak::Speaker,
    usage::usage,
};
use crate::{
    Decoder, Progress,
    error::{not_the_protocol, truncated},
    wire::{
        lenient::{First, Numbered, Str},
        surrogates::mend_surrogates,
    },
};

#[derive(Deserialize)]
struct Frame<'a> {
    #[serde(borrow)]
    id: Option<Str<'a>>,
    #[serde(borrow)]
    model: Option<Str<'a>>,
    #[serde(borrow, default)]
    choices: First<Choice<'a>>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    index: Option<u64>,
    #[serde(borrow)]
    delta: Option<Delta<'a>>,
    #[serde(borrow)]
    finish_reason: Option<Str<'a>>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

impl Numbered for Choice<'_> {
    fn number(&self) -> Option<u64> {
        self.index
    }
}

/// Reads one streamed answer.
#[derive(Debug)]
pub(super) struct StreamDecoder {
    origin: Origin,
    /// None if nobody listens.
    speaker: Option<Speaker>,
    fold: Fold,
    id: String,
    model: String,
    finish: String,
    usage: Usage,
    begun: bool,
    ended: bool,
}

impl StreamDecoder {
    pub(super) fn new(origin: Origin, chunks: bool) -> Self {
        Self {
            origin,
            speaker: chunks.then(Speaker::default),
            fold: Fold::default(),
            id: String::new(),
            model: String::new(),
            finish: String::new(),
            usage: Usage::default(),
            begun: false,
            ended: false,
        }
    }

    fn choice(&mut self, choice: Choice<'_>, chunks: &mut Vec<Chunk>) -> serde_json::Result<()> {
        self.begun = true;
        if let Some(delta) = choice.delta {
            self.fold.push(&delta)?;
            if let Some(speaker) = &mut self.speaker {
                speaker.delta(&delta, self.fold.calls(), &self.origin, chunks)?;
            }
        }
        keep_first(&mut self.finish, choice.finish_reason);
        Ok(())
    }

    fn unreadable(&self, data: &str) -> Error {
        not_the_protocol(self.origin.provider(), "an event of the stream is not a chat completion chunk", data)
    }
}

impl Decoder for StreamDecoder {
    fn frame(&mut self, data: &str, chunks: &mut Vec<Chunk>) -> Result<()> {
        let data = data.trim();
        if data == "[DONE]" {
            self.ended = true;
        }
        if self.ended || data.is_empty() {
            return Ok(());
        }
        let data = &*mend_surrogates(data);
        let frame: Frame<'_> = serde_json::from_str(data).map_err(|e| self.unreadable(data).with_source(e))?;
        let choice = frame.choices.0;
        if let Some(error) = frame.error.or(choice.as_ref().and_then(|c| c.error)) {
            return Err(provider_error(error, &self.origin));
        }
        keep_first(&mut self.id, frame.id);
        keep_first(&mut self.model, frame.model);
        if let Some(said) = frame.usage {
            self.usage = usage(said);
        }
        match choice {
            Some(choice) => self.choice(choice, chunks).map_err(|e| self.unreadable(data).with_source(e)),
            None => Ok(()),
        }
    }

    fn progress(&self) -> Progress {
        match (self.ended, self.finish.is_empty()) {
            (true, _) => Progress::Ended,
            (false, false) => Progress::Complete,
            (false, true) => Progress::Open,
        }
    }

    fn finish(self: Box<Self>, chunks: &mut Vec<Chunk>) -> Result<ModelResponse> {
        if self.progress() == Progress::Open {
            return Err(truncated(self.origin.provider()));
        }
        if !self.begun {
            return Err(not_the_protocol(self.origin.provider(), "the stream held no answer", ""));
        }
        let json = self.fold.json(&self.id);
        let reading = read(&json, &self.origin, &self.id, self.fold.order());
        let reading = reading.map_err(|e| self.unreadable(&json).with_source(e))?;
        if let Some(speaker) = self.speaker {
            speaker.finish(&reading.blocks, chunks);
        }
        let mut response = respond(reading, json, &self.origin, Some(&self.finish));
        response.usage = self.usage;
        response.model = Some(self.model).filter(|m| !m.is_empty());
        response.id = Some(self.id).filter(|id| !id.is_empty());
        Ok(response)
    }
}

fn keep_first(known: &mut String, said: Option<Str<'_>>) {
    if let Some(said) = said
        && known.is_empty()
    {
        known.push_str(&said.0);
    }
}
