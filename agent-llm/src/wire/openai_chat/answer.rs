//! An answer under way. One that came whole is one event.

use std::sync::Arc;

use agent_core::{Chunk, Error, ModelResponse, Result, message::Origin};

use super::{
    candidate::Candidate,
    choices::{Choices, Numbered},
    details::Details,
    events::{Choice, Frame},
    finish::{answered, provider_error},
    read::read,
    usage,
};
use crate::{
    Decoder, Progress,
    error::{not_the_protocol, truncated},
    wire::surrogates::mend_surrogates,
};

/// An answer under way.
#[derive(Debug)]
pub(super) struct Answer {
    origin: Origin,
    is_heard: bool,
    id: Option<Arc<str>>,
    model: Option<Arc<str>>,
    /// The newest account: it is read at the end.
    usage: String,
    details: Details,
    /// The answer; none until it begins.
    first: Option<Candidate>,
    others: Vec<Candidate>,
    has_ended: bool,
}

/// In which form an answer comes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Whole,
    Streamed,
}

impl Form {
    fn is_not_met(self) -> &'static str {
        match self {
            Self::Whole => "the answer is not a chat completion",
            Self::Streamed => "an event of the stream is not a chat completion chunk",
        }
    }
}

/// Reads the body of an answer that came whole.
pub(super) fn decode(body: &str, origin: &Origin) -> Result<ModelResponse> {
    let mut answer = Answer::new(origin.clone(), false);
    answer.event(body, Form::Whole, &mut Vec::new())?;
    if answer.first.as_ref().is_none_or(|first| first.whole.is_none()) {
        return Err(not_the_protocol(origin.provider(), Form::Whole.is_not_met(), body));
    }
    answer.respond(&mut Vec::new())
}

impl Answer {
    pub(super) fn new(origin: Origin, is_heard: bool) -> Self {
        Self {
            origin,
            is_heard,
            id: None,
            model: None,
            usage: String::new(),
            details: Details::default(),
            first: None,
            others: Vec::new(),
            has_ended: false,
        }
    }

    fn event(&mut self, json: &str, form: Form, out: &mut Vec<Chunk>) -> Result<()> {
        let frame: Frame<'_> = serde_json::from_str(json).map_err(|e| self.unreadable(form, json, e))?;
        let behind = frame.choices.as_ref().and_then(|choices| choices.first.as_ref()?.error);
        if let Some(error) = frame.error.or(behind) {
            return Err(provider_error(error, &self.origin));
        }
        self.take(frame, form, out).map_err(|e| self.unreadable(form, json, e))
    }

    fn unreadable(&self, form: Form, json: &str, e: serde_json::Error) -> Error {
        not_the_protocol(self.origin.provider(), form.is_not_met(), json).with_source(e)
    }

    fn take(&mut self, frame: Frame<'_>, form: Form, out: &mut Vec<Chunk>) -> serde_json::Result<()> {
        if let (None, Some(id)) = (&self.id, frame.id.filter(|id| !id.is_empty())) {
            self.id = Some(id.0.into());
        }
        if let (None, Some(model)) = (&self.model, frame.model.filter(|model| !model.is_empty())) {
            self.model = Some(self.origin.answered_by(&model.0));
        }
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
            let answer = self.first.get_or_insert_with(|| Candidate::new(0, self.is_heard));
            answer.take(&choice, form, &self.origin, out)?;
        }
        others.iter().try_for_each(|choice| self.take_other(choice, form))
    }

    /// What is said of a choice that is told beside the answer.
    fn take_other(&mut self, choice: &Choice<'_>, form: Form) -> serde_json::Result<()> {
        let index = choice.number();
        let at = self.others.iter().position(|known| known.index == index).unwrap_or_else(|| {
            self.others.push(Candidate::new(index, false));
            self.others.len() - 1
        });
        self.others[at].take(choice, form, &self.origin, &mut Vec::new())
    }

    fn respond(self, out: &mut Vec<Chunk>) -> Result<ModelResponse> {
        let Self { origin, id, model, usage, details, first, others, .. } = self;
        let unmet = |what| not_the_protocol(origin.provider(), what, "");
        let mut first = first.ok_or_else(|| unmet("the stream held no answer"))?;
        let unreadable = |e| unmet("the events of the stream make no chat completion").with_source(e);
        let name = id.as_deref().unwrap_or_default();
        let (json, order) = first.message(name).map_err(unreadable)?;
        let mut reading = read(&json, &origin, name, order).map_err(unreadable)?;
        details.cite(&mut reading.blocks);
        reading.blocks = first.fold.finish(reading.blocks, out);
        let mut response = answered(reading, json, &origin, &first.finish);
        response.details = details.into_fields(&first.details);
        if !others.is_empty() {
            response.details.insert("choices".into(), others.into_iter().map(|other| other.into_value(name)).collect());
        }
        if let Ok(json) = serde_json::from_str(&usage) {
            usage::read(json, &mut response);
        }
        (response.model, response.id) = (model, id);
        Ok(response)
    }
}

impl Decoder for Answer {
    fn frame(&mut self, data: &str, chunks: &mut Vec<Chunk>) -> Result<()> {
        let data = data.trim();
        self.has_ended |= data == "[DONE]";
        if self.has_ended || data.is_empty() {
            return Ok(());
        }
        self.event(&mend_surrogates(data), Form::Streamed, chunks)
    }

    fn progress(&self) -> Progress {
        let is_finished = self.first.as_ref().is_some_and(|first| !first.finish.is_empty());
        match (self.has_ended, is_finished) {
            (true, _) => Progress::Ended,
            (false, true) => Progress::Complete,
            (false, false) => Progress::Open,
        }
    }

    fn finish(self: Box<Self>, chunks: &mut Vec<Chunk>) -> Result<ModelResponse> {
        match self.progress() {
            Progress::Open => Err(truncated(self.origin.provider())),
            _ => self.respond(chunks),
        }
    }
}
