//! An answer under way. One that came whole is one event.

use std::{fmt, sync::Arc};

use agent_core::{
    Chunk, Error, ModelResponse, Result,
    message::{Origin, Raw},
};
use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, SeqAccess, Visitor},
};
use serde_json::{Value, json, value::RawValue};

use super::{
    fold::{Delta, Fold},
    read::{Field, ORDER, answered, read},
    usage,
};
use crate::{
    Decoder, Progress, ProviderError,
    error::{not_the_protocol, truncated},
    wire::{
        details::{Details, parse},
        ended::message,
        lenient::Str,
        open_struct::open_struct,
        surrogates::mend_surrogates,
    },
};

open_struct! {
    /// An answer, or an event of one. What comes with every event of the great servers is named here, so that it costs no
    /// list.
    Frame {
        id: Str<'a> = "id",
        model: Str<'a> = "model",
        choices: Choices<'a> = "choices",
        usage: &'a RawValue = "usage",
        error: &'a RawValue = "error",
        system_fingerprint: &'a RawValue = "system_fingerprint",
        service_tier: &'a RawValue = "service_tier",
        provider: &'a RawValue = "provider",
        _of_no_interest: IgnoredAny = "object" | "created" | "obfuscation" | "p",
    }
}

open_struct! {
    /// What is said of a choice. An event may hold the whole message beside a delta: it repeats what the deltas said.
    Choice {
        index: u64 = "index",
        delta: Delta<'a> = "delta",
        message: &'a RawValue = "message",
        finish_reason: Str<'a> = "finish_reason",
        logprobs: &'a RawValue = "logprobs",
        // Some servers have the usage here.
        usage: &'a RawValue = "usage",
        error: &'a RawValue = "error",
    }
}

/// The choices of an event. The first that says that it is number 0 is the answer, and costs no list; nothing is as good as 0.
#[derive(Debug, Default)]
pub(super) struct Choices<'a> {
    first: Option<Choice<'a>>,
    others: Vec<Choice<'a>>,
}

impl<'de: 'a, 'a> Deserialize<'de> for Choices<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct List;

        impl<'de> Visitor<'de> for List {
            type Value = Choices<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> std::result::Result<Self::Value, A::Error> {
                let mut choices = Choices::default();
                while let Some(choice) = items.next_element::<Choice<'_>>()? {
                    match choices.first {
                        None if choice.index.unwrap_or(0) == 0 => choices.first = Some(choice),
                        _ => choices.others.push(choice),
                    }
                }
                Ok(choices)
            }
        }

        deserializer.deserialize_seq(List)
    }
}

/// In which form an answer comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Whole,
    Streamed,
}

/// An answer under way.
#[derive(Debug)]
pub(super) struct Answer {
    origin: Origin,
    form: Form,
    is_heard: bool,
    id: Option<Arc<str>>,
    model: Option<Arc<str>>,
    /// The newest account: it is read at the end.
    usage: String,
    details: Details,
    /// The answer; none until it begins.
    first: Option<Candidate>,
    /// What is told beside it.
    others: Vec<Candidate>,
    has_ended: bool,
}

/// A choice under way.
#[derive(Debug)]
struct Candidate {
    index: u64,
    fold: Fold,
    /// The message, if it came whole.
    whole: Option<Box<RawValue>>,
    finish: String,
    details: Details,
}

/// Reads the body of an answer that came whole.
pub(super) fn decode(body: &str, origin: &Origin) -> Result<ModelResponse> {
    let mut answer = Answer { form: Form::Whole, ..Answer::new(origin.clone(), false) };
    answer.event(body, &mut Vec::new())?;
    match &answer.first {
        Some(first) if first.whole.is_some() => answer.respond(&mut Vec::new()),
        _ => Err(answer.unmet(body)),
    }
}

impl Answer {
    pub(super) fn new(origin: Origin, is_heard: bool) -> Self {
        Self {
            origin,
            form: Form::Streamed,
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

    fn unmet(&self, json: &str) -> Error {
        let what = match self.form {
            Form::Whole => "the answer is not a chat completion",
            Form::Streamed => "an event of the stream is not a chat completion chunk",
        };
        not_the_protocol(self.origin.provider(), what, json)
    }

    fn event(&mut self, json: &str, out: &mut Vec<Chunk>) -> Result<()> {
        let frame: Frame<'_> = serde_json::from_str(json).map_err(|e| self.unmet(json).with_source(e))?;
        let of_choice = frame.choices.as_ref().and_then(|choices| choices.first.as_ref()?.error);
        if let Some(error) = frame.error.or(of_choice) {
            let said = json!({ "error": parse(error).unwrap_or_default() });
            return Err(ProviderError::from_json(&said).into_error(self.origin.provider()));
        }
        self.take(frame, out).map_err(|e| self.unmet(json).with_source(e))
    }

    fn take(&mut self, frame: Frame<'_>, out: &mut Vec<Chunk>) -> serde_json::Result<()> {
        if let (None, Some(id)) = (&self.id, frame.id.filter(|id| !id.is_empty())) {
            self.id = Some(id.0.into());
        }
        if let (None, Some(model)) = (&self.model, frame.model.filter(|model| !model.is_empty())) {
            self.model = Some(self.origin.answered_by(&model));
        }
        let usual = [
            ("system_fingerprint", frame.system_fingerprint),
            ("service_tier", frame.service_tier),
            ("provider", frame.provider),
        ];
        usual.into_iter().for_each(|(name, json)| json.into_iter().for_each(|json| self.details.add(name, json)));
        frame.rest.iter().for_each(|(name, json)| self.details.add(name, json));
        let Choices { first, others } = frame.choices.unwrap_or_default();
        if let Some(said) = frame.usage.or(first.as_ref().and_then(|choice| choice.usage)) {
            self.usage.clear();
            self.usage.push_str(said.get());
        }
        if let Some(choice) = first {
            let answer = self.first.get_or_insert_with(|| Candidate::new(0, self.is_heard));
            answer.take(&choice, self.form, &self.origin, out)?;
        }
        for choice in others {
            let index = choice.index.unwrap_or(0);
            let at = self.others.iter().position(|known| known.index == index).unwrap_or_else(|| {
                self.others.push(Candidate::new(index, false));
                self.others.len() - 1
            });
            self.others[at].take(&choice, self.form, &self.origin, &mut Vec::new())?;
        }
        Ok(())
    }

    fn respond(self, out: &mut Vec<Chunk>) -> Result<ModelResponse> {
        let Self { origin, id, model, usage, details, first, others, .. } = self;
        let unmet = |what| not_the_protocol(origin.provider(), what, "");
        let mut first = first.ok_or_else(|| unmet("the stream held no answer"))?;
        let unreadable = |e| unmet("the events of the stream make no chat completion").with_source(e);
        let name = id.as_deref().unwrap_or_default();
        let (json, order) = first.message(name).map_err(unreadable)?;
        let mut blocks = read(&json, &origin, order).map_err(unreadable)?;
        details.cite(&mut blocks);
        let message = message(blocks, name, Raw::new(origin, json), |blocks| first.fold.finish(blocks, out));
        let mut response = answered(message, &first.finish);
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

impl Candidate {
    fn new(index: u64, is_heard: bool) -> Self {
        Self { index, fold: Fold::new(is_heard), whole: None, finish: String::new(), details: Details::default() }
    }

    fn take(&mut self, said: &Choice<'_>, form: Form, origin: &Origin, out: &mut Vec<Chunk>) -> serde_json::Result<()> {
        match form {
            Form::Whole => self.whole = said.message.map(ToOwned::to_owned),
            Form::Streamed => said.delta.iter().try_for_each(|delta| self.fold.push(delta, origin, out))?,
        }
        if self.finish.is_empty() {
            self.finish.push_str(said.finish_reason.as_deref().unwrap_or_default());
        }
        said.logprobs.into_iter().for_each(|json| self.details.append("logprobs", json));
        said.rest.iter().for_each(|(name, json)| self.details.append(name, json));
        Ok(())
    }

    /// The message as it came whole, or would have come in the response of this id, and the order of its fields.
    fn message(&mut self, response: &str) -> serde_json::Result<(Box<RawValue>, [Field; 5])> {
        match self.whole.take() {
            Some(whole) => Ok((whole, ORDER)),
            None => Ok((self.fold.json(response)?, self.fold.order())),
        }
    }

    /// What is told of the choice beside the answer.
    fn into_value(mut self, response: &str) -> Value {
        let message = self.message(response).ok().and_then(|(json, _)| parse(&json)).unwrap_or_default();
        let mut fields = self.details.into_fields(&Details::default());
        fields.insert("index".into(), self.index.into());
        fields.insert("message".into(), message);
        if !self.finish.is_empty() {
            fields.insert("finish_reason".into(), self.finish.into());
        }
        fields.into()
    }
}

impl Decoder for Answer {
    fn frame(&mut self, data: &str, chunks: &mut Vec<Chunk>) -> Result<()> {
        let data = data.trim();
        self.has_ended |= data == "[DONE]";
        if self.has_ended || data.is_empty() {
            return Ok(());
        }
        self.event(&mend_surrogates(data), chunks)
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
