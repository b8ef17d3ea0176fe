//! Decoding of answers, from one response or from the many of a stream.

use std::collections::BTreeMap;

use agent_core::{
    AssistantMessage, Chunk, Error, ErrorKind, FinishReason, ModelResponse, Result, Retry,
    message::{Origin, Raw},
};
use serde_json::{Map, Value, json, value::RawValue};

use super::{fold::Fold, turn::content, usage::usage};
use crate::{
    Progress,
    error::{not_the_protocol, refused},
    wire::{
        events,
        lenient::{Str, each, lenient, text},
        merge::merge,
        open_struct::open_struct,
    },
};

open_struct! {
    /// One response: the whole answer, or a piece of it.
    ResponseSaid {
        candidates: &'a RawValue = "candidates",
        feedback: &'a RawValue = "promptFeedback",
        model: Str<'a> = "modelVersion",
        id: Str<'a> = "responseId",
        error: &'a RawValue = "error",
    }
}

open_struct! {
    /// One of the requested candidates, or a piece of it.
    CandidateSaid { index: u64 = "index", content: &'a RawValue = "content", finish: Str<'a> = "finishReason", }
}

open_struct! {
    /// A content. A model that produces nothing sends no parts.
    ContentSaid { parts: &'a RawValue = "parts", }
}

open_struct! {
    Feedback { reason: Str<'a> = "blockReason", message: Str<'a> = "blockReasonMessage", }
}

/// Decoder of an answer: each response holds the next piece. The last contains the finish reason.
#[derive(Debug)]
pub(super) struct Answer {
    origin: Origin,
    is_heard: bool,
    /// Id of the answer, and name of the model: the first that were sent.
    id: String,
    model: String,
    /// Candidates by index. Index 0 is the answer; the others become details.
    candidates: BTreeMap<u64, Candidate>,
    rest: Map<String, Value>,
    /// True if a proxy signalled the end of the stream.
    has_ended: bool,
}

/// A candidate in progress.
#[derive(Debug)]
struct Candidate {
    /// Fields of the content besides parts; `None` while there was no content.
    content: Option<Map<String, Value>>,
    fold: Fold,
    /// Finish reason; empty while in progress.
    finish: String,
    rest: Map<String, Value>,
}

/// Decodes the body of a non-streamed answer. It may be a list of stream events: the API streams
/// this way to clients that do not request server-sent events.
pub(super) fn decode(body: &str, origin: &Origin) -> Result<ModelResponse> {
    let (mut answer, mut nobody) = (Answer::new(origin.clone(), false), Vec::new());
    if !body.trim_start().starts_with('[') {
        let sent = answer.take(body, &mut nobody)?;
        return answer.ended(sent, &mut nobody);
    }
    let unreadable = |e| events::Answer::unreadable(&answer, body).with_source(e);
    let pieces: Vec<&RawValue> = serde_json::from_str(body).map_err(unreadable)?;
    pieces.iter().try_for_each(|piece| answer.take(piece.get(), &mut nobody).map(drop))?;
    answer.ended(None, &mut nobody)
}

impl events::Answer for Answer {
    const UNREADABLE: &'static str = "the answer is not a response of generateContent";

    fn origin(&self) -> &Origin {
        &self.origin
    }

    fn event(&mut self, json: &str, chunks: &mut Vec<Chunk>) -> Result<()> {
        self.take(json, chunks).map(drop)
    }

    fn end(&mut self) {
        self.has_ended = true;
    }

    fn progress(&self) -> Progress {
        let is_complete = self.candidates.get(&0).is_some_and(|candidate| !candidate.finish.is_empty());
        match (self.has_ended, is_complete) {
            (true, _) => Progress::Ended,
            (false, true) => Progress::Complete,
            (false, false) => Progress::Open,
        }
    }

    fn respond(self, chunks: &mut Vec<Chunk>) -> Result<ModelResponse> {
        self.ended(None, chunks)
    }
}

impl Answer {
    pub(super) fn new(origin: Origin, is_heard: bool) -> Self {
        let (id, model) = (String::new(), String::new());
        Self { origin, is_heard, id, model, candidates: BTreeMap::new(), rest: Map::new(), has_ended: false }
    }

    /// Adds a response, and returns the content of its first candidate.
    ///
    /// # Errors
    /// The provider's error if the response reports one;
    /// [`ContentFiltered`](ErrorKind::ContentFiltered) if it blocked the prompt.
    fn take<'a>(&mut self, json: &'a str, out: &mut Vec<Chunk>) -> Result<Option<&'a RawValue>> {
        let unreadable = |of: &Self, e| events::Answer::unreadable(of, json).with_source(e);
        let said: ResponseSaid<'a> = serde_json::from_str(json).map_err(|e| unreadable(self, e))?;
        if said.error.is_some() {
            return Err(refused(self.origin.provider(), json));
        }
        for (known, said) in [(&mut self.id, &said.id), (&mut self.model, &said.model)] {
            if known.is_empty() {
                known.push_str(text(said));
            }
        }
        keep(&mut self.rest, &said.rest);
        let mut first = None;
        let take = |json: &'a RawValue| {
            let candidate: CandidateSaid<'a> = serde_json::from_str(json.get())?;
            let index = candidate.index.unwrap_or(0);
            if index == 0 {
                first = first.or(candidate.content);
            }
            let begun = || Candidate::new(self.origin.clone(), self.is_heard && index == 0);
            self.candidates.entry(index).or_insert_with(begun).take(&candidate, &self.id, out)
        };
        let taken = said.candidates.map_or(Ok(()), |candidates| each(candidates, take));
        taken.map_err(|e| unreadable(self, e))?;
        if let Some(feedback) = said.feedback {
            keep(&mut self.rest, &[(Str("promptFeedback".into()), feedback)]);
            if self.candidates.is_empty() {
                self.check(feedback)?;
            }
        }
        Ok(first)
    }

    /// A blocked prompt has no answer.
    fn check(&self, feedback: &RawValue) -> Result<()> {
        let feedback: Feedback<'_> = lenient(feedback);
        let Some(reason) = feedback.reason.filter(|reason| !reason.is_empty()) else { return Ok(()) };
        let why =
            feedback.message.map_or_else(|| reason.0.to_string(), |message| format!("{}: {}", &*reason, &*message));
        Err(Error::new(ErrorKind::ContentFiltered, format!("the provider refused the prompt: {why}"))
            .with_retry(Retry::Permanent)
            .with_context("provider", self.origin.provider())
            .with_context("code", reason.0))
    }

    /// Builds the response. `sent` is the content of a non-streamed answer; else it is put
    /// together.
    ///
    /// # Errors
    /// [`Protocol`](ErrorKind::Protocol) if there is no candidate.
    fn ended(mut self, sent: Option<&RawValue>, out: &mut Vec<Chunk>) -> Result<ModelResponse> {
        let Some(first) = self.candidates.remove(&0) else {
            return Err(not_the_protocol(self.origin.provider(), "the answer is none", "it holds no candidate"));
        };
        let origin = self.origin;
        let blocks = first.fold.finish(&first.rest, out);
        let json = sent.map(ToOwned::to_owned).or_else(|| Some(content(&origin, &blocks, &first.content?)));
        let message = match json {
            Some(json) => AssistantMessage::from_provider(blocks, Raw::new(origin.clone(), json)),
            None => AssistantMessage::new(blocks),
        };
        let finish = finish_reason(&first.finish, &message);
        let usage = self.rest.get("usageMetadata").map(usage).unwrap_or_default();
        let mut response = ModelResponse::new(message).with_usage(usage);
        if finish == FinishReason::ContentFilter {
            response.details.insert("finishReason".into(), first.finish.into());
        }
        response.details.extend(first.rest);
        for (name, value) in self.rest {
            merge(response.details.entry(name).or_insert(Value::Null), value);
        }
        let others: Vec<_> =
            self.candidates.into_iter().map(|(index, other)| other.into_value(index, &origin)).collect();
        if !others.is_empty() {
            response.details.insert("candidates".into(), others.into());
        }
        response.finish = finish;
        response.model = Some(self.model).filter(|model| !model.is_empty()).map(|model| origin.answered_by(&model));
        response.id = Some(self.id).filter(|id| !id.is_empty()).map(Into::into);
        Ok(response)
    }
}

impl Candidate {
    fn new(origin: Origin, is_heard: bool) -> Self {
        Self { content: None, fold: Fold::new(origin, is_heard), finish: String::new(), rest: Map::new() }
    }

    /// Adds a piece. `response` is the id of the response.
    fn take(&mut self, said: &CandidateSaid<'_>, response: &str, out: &mut Vec<Chunk>) -> serde_json::Result<()> {
        if let Some(content) = said.content {
            let content: ContentSaid<'_> = serde_json::from_str(content.get())?;
            keep(self.content.get_or_insert_default(), &content.rest);
            let push = |part| {
                self.fold.push(part, response, out);
                Ok(())
            };
            content.parts.map_or(Ok(()), |parts| each(parts, push))?;
        }
        if let Some(finish) = said.finish.as_ref().filter(|finish| !finish.is_empty()) {
            self.finish = finish.0.to_string();
        }
        keep(&mut self.rest, &said.rest);
        Ok(())
    }

    /// Returns the candidate as in a non-streamed response.
    fn into_value(self, index: u64, origin: &Origin) -> Value {
        let blocks = self.fold.finish(&Map::new(), &mut Vec::new());
        let content = content(origin, &blocks, &self.content.unwrap_or_default());
        let mut told = json!({"index": index, "content": lenient::<Value>(&content)});
        let fields = told.as_object_mut().expect("an object");
        if !self.finish.is_empty() {
            fields.insert("finishReason".into(), self.finish.into());
        }
        fields.extend(self.rest);
        told
    }
}

/// Field that a stream sends in pieces; for all others the last value holds.
const IN_PIECES: &str = "logprobsResult";

/// Keeps fields that no message holds. An empty value does not replace a non-empty one.
fn keep(known: &mut Map<String, Value>, fields: &[(Str<'_>, &RawValue)]) {
    for (name, json) in fields.iter().filter(|(_, json)| !matches!(json.get(), "{}" | "[]")) {
        match (known.get_mut(&*name.0), serde_json::from_str(json.get())) {
            (_, Err(_)) => {} // a number that cannot be represented
            (Some(known), Ok(more)) if name.0 == IN_PIECES => merge(known, more),
            (_, Ok(value)) => drop(known.insert(name.0.to_string(), value)),
        }
    }
}

fn finish_reason(said: &str, message: &AssistantMessage) -> FinishReason {
    match said {
        "" | "STOP" if message.has_calls() => FinishReason::ToolCalls,
        "" | "STOP" => FinishReason::Stop,
        "MAX_TOKENS" => FinishReason::Length,
        "SAFETY"
        | "RECITATION"
        | "BLOCKLIST"
        | "PROHIBITED_CONTENT"
        | "SPII"
        | "MODEL_ARMOR"
        | "IMAGE_SAFETY"
        | "IMAGE_PROHIBITED_CONTENT"
        | "IMAGE_RECITATION" => FinishReason::ContentFilter,
        other => FinishReason::Other(other.to_owned()),
    }
}
