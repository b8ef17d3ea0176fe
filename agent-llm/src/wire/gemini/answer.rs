//! What a provider answers, put together from one response or from the many of a stream.

use agent_core::{
    AssistantMessage, Chunk, Error, ErrorKind, FinishReason, ModelResponse, Result, Retry,
    message::{Origin, Raw},
};
use serde_json::{Map, Value, json, value::RawValue};

use super::{
    candidate::{Candidate, CandidateSaid, keep},
    turn::content,
    usage::usage,
};
use crate::{
    Decoder, Progress,
    error::{not_the_protocol, refused, truncated},
    wire::{
        json::raw_text,
        lenient::{Str, each, text},
        merge::merge,
        open_struct::open_struct,
        surrogates::mend_surrogates,
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
    Feedback {
        reason: Str<'a> = "blockReason",
        message: Str<'a> = "blockReasonMessage",
    }
}

/// An answer under way: responses, of which each holds the next piece. The last says why it ended.
#[derive(Debug)]
pub(super) struct Answer {
    origin: Origin,
    is_heard: bool,
    /// Names the answer: the first id, and the first model, that was said.
    id: String,
    model: String,
    candidates: Vec<Candidate>,
    rest: Map<String, Value>,
    /// A proxy said that nothing follows.
    has_ended: bool,
}

/// Reads the body of an answer that came whole. It may be the list of what a stream would have held: so the API streams to
/// those who do not ask for events.
pub(super) fn decode(body: &str, origin: &Origin) -> Result<ModelResponse> {
    let (mut answer, mut nobody) = (Answer::new(origin.clone(), false), Vec::new());
    if body.trim_start().starts_with('[') {
        let pieces: Vec<&RawValue> = serde_json::from_str(body).map_err(|e| answer.unreadable(body).with_source(e))?;
        for piece in pieces {
            answer.take(piece.get(), &mut nobody)?;
        }
        return answer.respond(None, &mut nobody);
    }
    let sent = answer.take(body, &mut nobody)?;
    answer.respond(sent, &mut nobody)
}

impl Decoder for Answer {
    fn frame(&mut self, data: &str, chunks: &mut Vec<Chunk>) -> Result<()> {
        let data = data.trim();
        self.has_ended |= data == "[DONE]";
        if self.has_ended || data.is_empty() {
            return Ok(());
        }
        self.take(&mend_surrogates(data), chunks).map(drop)
    }

    fn progress(&self) -> Progress {
        let is_complete = self.candidates.iter().any(|candidate| candidate.index == 0 && !candidate.finish.is_empty());
        match (self.has_ended, is_complete) {
            (true, _) => Progress::Ended,
            (false, true) => Progress::Complete,
            (false, false) => Progress::Open,
        }
    }

    fn finish(self: Box<Self>, chunks: &mut Vec<Chunk>) -> Result<ModelResponse> {
        match self.progress() {
            Progress::Open => Err(truncated(self.origin.provider())),
            _ => self.respond(None, chunks),
        }
    }
}

impl Answer {
    pub(super) fn new(origin: Origin, is_heard: bool) -> Self {
        let (id, model) = (String::new(), String::new());
        Self { origin, is_heard, id, model, candidates: Vec::new(), rest: Map::new(), has_ended: false }
    }

    /// Adds a response, and gives back the content of its first candidate.
    ///
    /// # Errors
    /// The provider's error if the response is one; [`ContentFiltered`](ErrorKind::ContentFiltered) if it refused the prompt.
    fn take<'a>(&mut self, json: &'a str, out: &mut Vec<Chunk>) -> Result<Option<&'a RawValue>> {
        let unreadable = |e| self.unreadable(json).with_source(e);
        let said: ResponseSaid<'a> = serde_json::from_str(json).map_err(unreadable)?;
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
            if candidate.index.unwrap_or(0) == 0 {
                first = first.or(candidate.content);
            }
            self.candidate(&candidate, out)
        };
        let taken = said.candidates.map_or(Ok(()), |candidates| each(candidates, take));
        taken.map_err(|e| self.unreadable(json).with_source(e))?;
        if let Some(feedback) = said.feedback {
            keep(&mut self.rest, &[(Str("promptFeedback".into()), feedback)]);
            if self.candidates.is_empty() {
                self.check(feedback)?;
            }
        }
        Ok(first)
    }

    fn candidate(&mut self, said: &CandidateSaid<'_>, out: &mut Vec<Chunk>) -> serde_json::Result<()> {
        let index = said.index.unwrap_or(0);
        let at = self.candidates.iter().position(|known| known.index == index).unwrap_or_else(|| {
            let is_heard = self.is_heard && index == 0;
            self.candidates.push(Candidate::new(index, self.origin.clone(), is_heard));
            self.candidates.len() - 1
        });
        self.candidates[at].take(said, &self.id, out)
    }

    /// A prompt that was refused has no answer.
    fn check(&self, feedback: &RawValue) -> Result<()> {
        let feedback: Feedback<'_> = serde_json::from_str(feedback.get()).unwrap_or_default();
        let Some(reason) = feedback.reason.filter(|reason| !reason.is_empty()) else { return Ok(()) };
        let why = [Some(&*reason.0), feedback.message.as_ref().map(|message| &*message.0)];
        let why = why.into_iter().flatten().collect::<Vec<_>>().join(": ");
        Err(Error::new(ErrorKind::ContentFiltered, format!("the provider refused the prompt: {why}"))
            .with_retry(Retry::Permanent)
            .with_context("provider", self.origin.provider())
            .with_context("code", reason.0))
    }

    /// The response. `sent` is the content if it came whole; else it is put together.
    ///
    /// # Errors
    /// [`Protocol`](ErrorKind::Protocol) if there is no candidate.
    fn respond(mut self, sent: Option<&RawValue>, out: &mut Vec<Chunk>) -> Result<ModelResponse> {
        let Some(first) = self.candidates.iter().position(|candidate| candidate.index == 0) else {
            return Err(not_the_protocol(self.origin.provider(), "the answer is none", "it holds no candidate"));
        };
        let origin = self.origin;
        let first = self.candidates.remove(first);
        let blocks = first.fold.finish(&first.rest, out);
        let raw = match sent {
            Some(sent) => Some(Raw::new(origin.clone(), sent.to_owned())),
            None => first.content.map(|rest| raw_text(&content(&origin, &blocks, &rest), &origin)),
        };
        let message = match raw {
            Some(raw) => AssistantMessage::from_provider(blocks, raw),
            None => AssistantMessage::new(blocks),
        };
        let finish = finish_reason(&first.finish, &message);
        let mut response = ModelResponse::new(message);
        response.usage = self.rest.get("usageMetadata").map(usage).unwrap_or_default();
        if finish == FinishReason::ContentFilter {
            response.details.insert("finishReason".into(), first.finish.into());
        }
        response.details.extend(first.rest);
        self.rest
            .into_iter()
            .for_each(|(name, value)| merge(response.details.entry(name).or_insert(Value::Null), value));
        let others: Vec<_> = self.candidates.into_iter().map(|other| told(other, &origin)).collect();
        if !others.is_empty() {
            response.details.insert("candidates".into(), others.into());
        }
        response.finish = finish;
        response.model = Some(self.model).filter(|model| !model.is_empty()).map(|model| origin.answered_by(&model));
        response.id = Some(self.id).filter(|id| !id.is_empty()).map(Into::into);
        Ok(response)
    }

    fn unreadable(&self, json: &str) -> Error {
        not_the_protocol(self.origin.provider(), "the answer is not a response of generateContent", json)
    }
}

/// A further candidate, as it would have come whole.
fn told(candidate: Candidate, origin: &Origin) -> Value {
    let blocks = candidate.fold.finish(&Map::new(), &mut Vec::new());
    let mut fields = Map::new();
    fields.insert("index".into(), candidate.index.into());
    let content = content(origin, &blocks, &candidate.content.unwrap_or_default());
    fields.insert("content".into(), serde_json::from_str(&content).unwrap_or_default());
    if !candidate.finish.is_empty() {
        fields.insert("finishReason".into(), json!(candidate.finish));
    }
    fields.extend(candidate.rest);
    fields.into()
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
