//! An answer under way. One that came whole is what the last event of a stream holds.

use std::mem::take;

use agent_core::{Chunk, Error, ModelResponse, Result, message::Origin};
use serde_json::value::RawValue;

use super::{
    events::{Event, Meaning},
    finish::{ResponseSaid, provider_error, respond},
    fold::{Field, Fold},
    read::items,
};
use crate::{
    Decoder, Progress,
    error::{not_the_protocol, truncated},
    wire::{lenient::Str, open_struct::open_struct, surrogates::mend_surrogates},
};

/// Reads one streamed answer.
#[derive(Debug)]
pub(super) struct Answer {
    origin: Origin,
    fold: Fold,
    id: String,
    model: String,
    /// The last event.
    end: Option<String>,
}

open_struct! {
    HeadSaid { id: Str<'a> = "id", model: Str<'a> = "model", }
}

open_struct! {
    EndSaid {
        _kind: &'a RawValue = "type",
        _number: &'a RawValue = "sequence_number",
        response: &'a RawValue = "response",
    }
}

/// Reads the body of an answer that came whole.
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
    Answer::new(origin.clone(), false).end(said, body, &mut Vec::new())
}

impl Answer {
    pub(super) fn new(origin: Origin, chunks: bool) -> Self {
        let fold = Fold::new(origin.clone(), chunks);
        Self { origin, fold, id: String::new(), model: String::new(), end: None }
    }

    fn event(&mut self, event: &Event<'_>, data: &str, chunks: &mut Vec<Chunk>) -> Result<()> {
        match (event.meaning(), event.item, event.part) {
            (Meaning::Delta(field), ..) => {
                if let Some(delta) = event.more() {
                    self.fold.more(event.place(), field, event.nth(field), &delta.0, chunks);
                }
            }
            (Meaning::Whole(field), ..) => {
                let whole = event.whole(field).unwrap_or_default();
                if let Some(rest) = self.fold.left_out(event.place(), field, event.nth(field), &whole.0) {
                    self.fold.more(event.place(), field, event.nth(field), rest, chunks);
                }
            }
            (Meaning::PartDone, _, Some(part)) => self.fold.part_done(event.place(), event.nth(Field::Text), part),
            (Meaning::Added, Some(item), _) => self.fold.added(event.place(), item, chunks),
            (Meaning::Done, Some(item), _) => self.fold.done(event.place(), item, &self.id, chunks),
            (Meaning::Response, ..) => self.header(event.response),
            (Meaning::End, ..) => {
                self.header(event.response);
                self.end = Some(data.to_owned());
            }
            (Meaning::Error, ..) => {
                return Err(provider_error(event.response.map_or(data, RawValue::get), &self.origin));
            }
            _ => {}
        }
        Ok(())
    }

    fn header(&mut self, response: Option<&RawValue>) {
        let said: HeadSaid<'_> = response.and_then(|json| serde_json::from_str(json.get()).ok()).unwrap_or_default();
        for (known, said) in [(&mut self.id, said.id), (&mut self.model, said.model)] {
            if let Some(said) = said.filter(|said| !said.is_empty()) {
                said.0.as_ref().clone_into(known);
            }
        }
    }

    /// The response, which `said` ends; `json` is what `said` was read from.
    fn end(mut self, mut said: ResponseSaid<'_>, json: &str, chunks: &mut Vec<Chunk>) -> Result<ModelResponse> {
        if said.is_error() {
            return Err(provider_error(json, &self.origin));
        }
        // Some servers repeat the items at the end, some only a part of them, and some none.
        let whole = said.output.filter(|output| {
            let count = items(output.get()).len();
            count > 0 && count >= self.fold.len()
        });
        let output = whole.map_or_else(|| self.fold.output(), RawValue::to_owned);
        for (said, known) in [(&mut said.id, take(&mut self.id)), (&mut said.model, take(&mut self.model))] {
            if said.as_ref().is_none_or(Str::is_empty) {
                *said = Some(Str(known.into()));
            }
        }
        let fold = self.fold;
        Ok(respond(&said, output, &self.origin, |blocks| fold.finish(blocks, chunks)))
    }

    fn unreadable(&self, data: &str) -> Error {
        not_the_protocol(self.origin.provider(), "an event of the stream is not one of a response", data)
    }
}

impl Decoder for Answer {
    fn frame(&mut self, data: &str, chunks: &mut Vec<Chunk>) -> Result<()> {
        let data = data.trim();
        if self.end.is_some() || data.is_empty() || data == "[DONE]" {
            return Ok(());
        }
        let data = &*mend_surrogates(data);
        let event: Event<'_> = serde_json::from_str(data).map_err(|e| self.unreadable(data).with_source(e))?;
        self.event(&event, data, chunks)
    }

    fn progress(&self) -> Progress {
        if self.end.is_some() { Progress::Ended } else { Progress::Open }
    }

    fn finish(mut self: Box<Self>, chunks: &mut Vec<Chunk>) -> Result<ModelResponse> {
        let Some(last) = self.end.take() else { return Err(truncated(self.origin.provider())) };
        let unreadable = |e| self.unreadable(&last).with_source(e);
        let end: EndSaid<'_> = serde_json::from_str(&last).map_err(unreadable)?;
        let json = end.response.map_or("{}", RawValue::get);
        let mut said: ResponseSaid<'_> = serde_json::from_str(json).map_err(unreadable)?;
        said.rest.extend(end.rest);
        self.end(said, json, chunks)
    }
}
