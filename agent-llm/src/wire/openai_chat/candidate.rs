//! A choice under way.

use agent_core::{Chunk, message::Origin};
use serde_json::{Value, value::RawValue};

use super::{
    answer::Form,
    details::{Details, parse},
    events::Choice,
    fold::Fold,
    read::{Field, ORDER},
};

/// A choice under way.
#[derive(Debug)]
pub(super) struct Candidate {
    pub(super) index: u64,
    pub(super) fold: Fold,
    /// The message, if it came whole.
    pub(super) whole: Option<Box<RawValue>>,
    pub(super) finish: String,
    pub(super) details: Details,
}

impl Candidate {
    pub(super) fn new(index: u64, is_heard: bool) -> Self {
        Self { index, fold: Fold::new(is_heard), whole: None, finish: String::new(), details: Details::default() }
    }

    pub(super) fn take(
        &mut self,
        choice: &Choice<'_>,
        form: Form,
        origin: &Origin,
        out: &mut Vec<Chunk>,
    ) -> serde_json::Result<()> {
        match form {
            Form::Whole => self.whole = choice.message.map(ToOwned::to_owned),
            Form::Streamed => choice.delta.iter().try_for_each(|delta| self.fold.push(delta, origin, out))?,
        }
        if let Some(finish) = choice.finish_reason.as_ref().filter(|_| self.finish.is_empty()) {
            self.finish.push_str(&finish.0);
        }
        if let Some(json) = choice.logprobs {
            self.details.append("logprobs", json);
        }
        choice.rest.iter().for_each(|(name, json)| self.details.append(&name.0, json));
        Ok(())
    }

    /// The message as it came whole, or would have come in the response of this id, and the order of its fields.
    pub(super) fn message(&mut self, response: &str) -> serde_json::Result<(Box<RawValue>, [Field; 5])> {
        match self.whole.take() {
            Some(whole) => Ok((whole, ORDER)),
            None => Ok((self.fold.json(response)?, self.fold.order())),
        }
    }

    /// What is told of the choice beside the answer.
    pub(super) fn into_value(mut self, response: &str) -> Value {
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
