//! Decoding of answers. A non-streamed answer is a single event.

use std::{collections::BTreeMap, fmt, sync::Arc};

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
    harmony,
    read::{add_older_call, answered, read},
    tags, usage,
};
use crate::{
    Decoder, Progress,
    error::{not_the_protocol, refused, truncated},
    wire::{
        details::{Details, parse},
        ended::message,
        lenient::{Str, text},
        open_struct::open_struct,
        surrogates::mend_surrogates,
    },
};

open_struct! {
    /// An answer, or an event of one.
    Frame {
        id: Str<'a> = "id",
        model: Str<'a> = "model",
        choices: Choices<'a> = "choices",
        usage: &'a RawValue = "usage",
        error: &'a RawValue = "error",
        _of_no_interest: IgnoredAny = "object" | "created" | "obfuscation" | "p",
    }
}

open_struct! {
    /// Fields of a choice. An event may contain the whole message alongside a delta: it repeats the
    /// deltas.
    Choice {
        index: u64 = "index",
        delta: Delta<'a> = "delta",
        message: &'a RawValue = "message",
        finish_reason: Str<'a> = "finish_reason",
        // Some servers put the usage here.
        usage: &'a RawValue = "usage",
        error: &'a RawValue = "error",
    }
}

/// Choices of an event. The first needs no list: events rarely have more.
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
                let mut choices = Choices { first: items.next_element()?, others: Vec::new() };
                while let Some(other) = items.next_element()? {
                    choices.others.push(other);
                }
                Ok(choices)
            }
        }

        deserializer.deserialize_seq(List)
    }
}

/// DeepSeek's finish reason for an answer that it could not complete.
const BROKEN_OFF: &str = "insufficient_system_resource";

/// Decoder of an answer.
#[derive(Debug)]
pub(super) struct Answer {
    origin: Origin,
    is_heard: bool,
    /// True if the answer is not streamed: a delta in it is ignored.
    is_whole: bool,
    id: Option<Arc<str>>,
    model: Option<Arc<str>>,
    /// Newest usage object, which is decoded at the end.
    usage: String,
    details: Details,
    /// Choices that have begun, by index. Index 0 is the answer; the others become details.
    candidates: BTreeMap<u64, Candidate>,
    has_ended: bool,
    /// True if the text may contain thinking between tags.
    has_tags: bool,
}

/// A choice in progress.
#[derive(Debug)]
struct Candidate {
    fold: Fold,
    finish: String,
    details: Details,
}

/// Decodes the body of a non-streamed answer.
pub(super) fn decode(body: &str, origin: &Origin, has_tags: bool) -> Result<ModelResponse> {
    let mut answer = Answer { is_whole: true, ..Answer::new(origin.clone(), false, has_tags) };
    answer.event(body, &mut Vec::new())?;
    match answer.candidates.get(&0) {
        Some(first) if first.fold.is_whole() => answer.respond(&mut Vec::new()),
        _ => Err(answer.unmet(body)),
    }
}

impl Answer {
    pub(super) fn new(origin: Origin, is_heard: bool, has_tags: bool) -> Self {
        Self {
            origin,
            is_heard,
            is_whole: false,
            id: None,
            model: None,
            usage: String::new(),
            details: Details::default(),
            candidates: BTreeMap::new(),
            has_ended: false,
            has_tags,
        }
    }

    fn unmet(&self, json: &str) -> Error {
        not_the_protocol(self.origin.provider(), "this is no chat completion, and no chunk of one", json)
    }

    fn event(&mut self, json: &str, out: &mut Vec<Chunk>) -> Result<()> {
        let frame: Frame<'_> = serde_json::from_str(json).map_err(|e| self.unmet(json).with_source(e))?;
        let Choices { first, others } = frame.choices.unwrap_or_default();
        let (mut error, mut usage) = (frame.error, frame.usage);
        for (place, choice) in (0..).zip(first.into_iter().chain(others)) {
            let index = choice.index.unwrap_or(place);
            if index == 0 {
                (error, usage) = (error.or(choice.error), usage.or(choice.usage));
            }
            let candidate = self.candidates.entry(index).or_insert_with(|| Candidate {
                fold: Fold::new(self.origin.clone(), self.is_heard && index == 0, self.has_tags),
                finish: String::new(),
                details: Details::default(),
            });
            candidate.take(&choice, self.is_whole, out).map_err(|e| self.unmet(json).with_source(e))?;
        }
        if let Some(error) = error {
            return Err(refused(self.origin.provider(), &format!(r#"{{"error":{error}}}"#)));
        }
        if let (None, Some(id)) = (&self.id, frame.id.filter(|id| !id.is_empty())) {
            self.id = Some(id.0.into());
        }
        if let (None, Some(model)) = (&self.model, frame.model.filter(|model| !model.is_empty())) {
            self.model = Some(self.origin.answered_by(&model));
        }
        // Groq's location of the usage unless the request asks for it.
        let own = |(name, json): &(Str<'_>, &RawValue)| {
            let said = (&**name == "x_groq").then(|| parse(json))??;
            said.get("usage").filter(|usage| usage.is_object()).map(ToString::to_string)
        };
        match usage {
            Some(usage) if usage.get() != "null" => usage.get().clone_into(&mut self.usage),
            _ => self.usage.extend(frame.rest.iter().find_map(own).filter(|_| self.usage.is_empty())),
        }
        frame.rest.iter().for_each(|(name, json)| self.details.add(name, json));
        Ok(())
    }

    fn respond(mut self, out: &mut Vec<Chunk>) -> Result<ModelResponse> {
        let unmet = || not_the_protocol(self.origin.provider(), "the stream holds no chat completion", "");
        let Candidate { mut fold, finish, details } = self.candidates.remove(&0).ok_or_else(unmet)?;
        let id = self.id.as_deref().unwrap_or_default();
        if finish == BROKEN_OFF {
            let why =
                json!({"error": {"message": "the server had no resources left for the whole answer", "code": finish}});
            return Err(refused(self.origin.provider(), &why.to_string()));
        }
        let json = fold.json(id).map_err(|e| unmet().with_source(e))?;
        let mut blocks = read(&json, &self.origin, fold.order()).map_err(|e| unmet().with_source(e))?;
        add_older_call(&json, &mut blocks);
        self.details.cite(&mut blocks);
        if self.has_tags {
            tags::split(&mut blocks);
        }
        let is_harmony = harmony::read(&mut blocks, id);
        let mut message = message(blocks, id, Raw::new(self.origin.clone(), json), |blocks| fold.finish(blocks, out));
        if is_harmony {
            message.blocks_mut(); // results will name calls that the raw message does not have
        }
        let mut response = answered(message, &finish);
        response.details = self.details.into_fields(&details);
        let others: Vec<_> = self.candidates.into_iter().map(|(index, other)| other.into_value(index, id)).collect();
        if !others.is_empty() {
            response.details.insert("choices".into(), others.into());
        }
        if let Ok(json) = serde_json::from_str(&self.usage) {
            usage::read(json, &mut response);
        }
        (response.model, response.id) = (self.model, self.id);
        Ok(response)
    }
}

impl Candidate {
    fn take(&mut self, said: &Choice<'_>, is_whole: bool, out: &mut Vec<Chunk>) -> serde_json::Result<()> {
        match (&said.delta, said.message) {
            (Some(delta), _) if !is_whole => self.fold.push(delta, out)?,
            (_, Some(message)) => self.fold.put(message),
            _ => {}
        }
        if self.finish.is_empty() {
            self.finish.push_str(text(&said.finish_reason));
        }
        said.rest.iter().for_each(|(name, json)| self.details.append(name, json));
        Ok(())
    }

    /// Returns the choice as a detail alongside the answer.
    fn into_value(mut self, index: u64, response: &str) -> Value {
        let message = self.fold.json(response).ok().and_then(|json| parse(&json)).unwrap_or_default();
        let mut fields = self.details.into_fields(&Details::default());
        fields.insert("index".into(), index.into());
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
        let is_complete = self.candidates.get(&0).is_some_and(|first| !first.finish.is_empty());
        match (self.has_ended, is_complete) {
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
