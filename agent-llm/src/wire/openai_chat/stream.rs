//! Answers that are streamed.

use agent_core::{Chunk, Error, ModelResponse, Result, message::Origin};
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use super::{
    candidate::{Candidate, Choice, keep_first},
    choices::{Choices, Numbered},
    decode::{provider_error, respond},
    details::Details,
    read::read,
    speak::Speaker,
    usage,
};
use crate::{
    Decoder, Progress,
    error::{not_the_protocol, truncated},
    wire::{lenient::Str, open_struct::open_struct, surrogates::mend_surrogates},
};

open_struct! {
    /// One event. What comes with every event of the great servers is named here, so that it costs no list.
    Frame {
        id: Str<'a> = "id",
        model: Str<'a> = "model",
        choices: Choices<Choice<'a>> = "choices",
        usage: &'a RawValue = "usage",
        error: &'a RawValue = "error",
        system_fingerprint: &'a RawValue = "system_fingerprint",
        service_tier: &'a RawValue = "service_tier",
        provider: &'a RawValue = "provider",
        _object: IgnoredAny = "object",
        _created: IgnoredAny = "created",
        _padding: IgnoredAny = "obfuscation",
        _padding_too: IgnoredAny = "p",
    }
}

/// Reads one streamed answer.
#[derive(Debug)]
pub(super) struct StreamDecoder {
    origin: Origin,
    /// None if nobody listens.
    speaker: Option<Speaker>,
    id: String,
    model: String,
    /// The newest account: it is read at the end.
    usage: String,
    details: Details,
    /// The answer; none until it begins.
    answer: Option<Candidate>,
    others: Vec<Candidate>,
    ended: bool,
}

impl StreamDecoder {
    pub(super) fn new(origin: Origin, chunks: bool) -> Self {
        Self {
            origin,
            speaker: chunks.then(Speaker::default),
            id: String::new(),
            model: String::new(),
            usage: String::new(),
            details: Details::default(),
            answer: None,
            others: Vec::new(),
            ended: false,
        }
    }

    fn take(&mut self, frame: Frame<'_>, chunks: &mut Vec<Chunk>) -> serde_json::Result<()> {
        keep_first(&mut self.id, frame.id.as_ref());
        keep_first(&mut self.model, frame.model.as_ref());
        let usual = [
            ("system_fingerprint", frame.system_fingerprint),
            ("service_tier", frame.service_tier),
            ("provider", frame.provider),
        ];
        usual.into_iter().for_each(|(name, json)| json.into_iter().for_each(|json| self.details.add(name, json)));
        frame.rest.iter().for_each(|(name, json)| self.details.add(&name.0, json));
        let Choices { first, others } = frame.choices.unwrap_or_default();
        if let Some(said) = frame.usage.or(first.as_ref().and_then(|choice| choice.usage)) {
            self.usage.clear();
            self.usage.push_str(said.get());
        }
        if let Some(choice) = first {
            let answer = self.answer.get_or_insert_default();
            answer.push(&choice)?;
            if let (Some(speaker), Some(delta)) = (&mut self.speaker, &choice.delta) {
                speaker.delta(delta, answer.fold.calls(), &self.origin, chunks)?;
            }
        }
        others.iter().try_for_each(|choice| self.other(choice.number()).push(choice))
    }

    /// A choice that is told beside the answer.
    fn other(&mut self, index: u64) -> &mut Candidate {
        let at = self.others.iter().position(|known| known.index == index).unwrap_or_else(|| {
            self.others.push(Candidate { index, ..Candidate::default() });
            self.others.len() - 1
        });
        &mut self.others[at]
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
        let behind = frame.choices.as_ref().and_then(|choices| choices.first.as_ref()?.error);
        if let Some(error) = frame.error.or(behind) {
            return Err(provider_error(error, &self.origin));
        }
        self.take(frame, chunks).map_err(|e| self.unreadable(data).with_source(e))
    }

    fn progress(&self) -> Progress {
        let is_finished = self.answer.as_ref().is_some_and(|answer| !answer.finish.is_empty());
        match (self.ended, is_finished) {
            (true, _) => Progress::Ended,
            (false, true) => Progress::Complete,
            (false, false) => Progress::Open,
        }
    }

    fn finish(self: Box<Self>, chunks: &mut Vec<Chunk>) -> Result<ModelResponse> {
        if self.progress() == Progress::Open {
            return Err(truncated(self.origin.provider()));
        }
        let Self { origin, speaker, id, model, usage, details, answer, others, .. } = *self;
        let Some(answer) = answer else {
            return Err(not_the_protocol(origin.provider(), "the stream held no answer", ""));
        };
        let unreadable = |e| {
            let what = "the events of the stream make no chat completion";
            not_the_protocol(origin.provider(), what, "").with_source(e)
        };
        let json = answer.fold.json(&id).map_err(unreadable)?;
        let reading = read(&json, &origin, &id, answer.fold.order()).map_err(unreadable)?;
        if let Some(speaker) = speaker {
            speaker.finish(&reading.blocks, chunks);
        }
        let mut response = respond(reading, json, &origin, &answer.finish);
        response.details = details.into_fields(&answer.details);
        if !others.is_empty() {
            response.details.insert("choices".into(), others.into_iter().map(|other| other.into_value(&id)).collect());
        }
        if let Ok(json) = serde_json::from_str(&usage) {
            usage::read(json, &mut response);
        }
        response.model = Some(model).filter(|m| !m.is_empty()).map(Into::into);
        response.id = Some(id).filter(|id| !id.is_empty()).map(Into::into);
        Ok(response)
    }
}
