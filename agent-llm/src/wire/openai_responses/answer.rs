//! An answer under way.

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

    fn finish(self: Box<Self>, chunks: &mut Vec<Chunk>) -> Result<ModelResponse> {
        let Some(end) = &self.end else { return Err(truncated(self.origin.provider())) };
        let unreadable = |e| self.unreadable(end).with_source(e);
        let end: EndSaid<'_> = serde_json::from_str(end).map_err(unreadable)?;
        let json = end.response.map_or("{}", RawValue::get);
        let mut answer: ResponseSaid<'_> = serde_json::from_str(json).map_err(unreadable)?;
        if let Some(error) = answer.error(json, &self.origin) {
            return Err(error);
        }
        // Some servers repeat the items at the end, some only a part of them, and some none.
        let whole = answer.output.filter(|output| {
            let count = items(output.get()).len();
            count > 0 && count >= self.fold.len()
        });
        let output = whole.map_or_else(|| self.fold.output(), RawValue::to_owned);
        answer.rest.extend(end.rest);
        let (id, model) = (Str(self.id.as_str().into()), Str(self.model.as_str().into()));
        (answer.id, answer.model) = (Some(id), Some(model));
        let fold = self.fold;
        Ok(respond(&answer, output, &self.origin, |blocks| fold.finish(blocks, chunks)))
    }
}
