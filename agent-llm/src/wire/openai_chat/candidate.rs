//! One choice of a streamed answer, put together.

use serde::de::IgnoredAny;
use serde_json::{Value, value::RawValue};

use super::{
    choices::Numbered,
    details::{Details, further, parse},
    fold::{Delta, Fold},
};
use crate::wire::{lenient::Str, open_struct::open_struct};

open_struct! {
    /// What one event says of a choice.
    Choice {
        index: u64 = "index",
        delta: Delta<'a> = "delta",
        finish_reason: Str<'a> = "finish_reason",
        logprobs: &'a RawValue = "logprobs",
        // Some servers have the usage here.
        usage: &'a RawValue = "usage",
        error: &'a RawValue = "error",
        // All that was said so far, which the deltas said already.
        _message: IgnoredAny = "message",
    }
}

impl Numbered for Choice<'_> {
    fn number(&self) -> u64 {
        self.index.unwrap_or(0)
    }
}

/// A choice under way.
#[derive(Debug, Default)]
pub(super) struct Candidate {
    pub(super) index: u64,
    pub(super) fold: Fold,
    pub(super) finish: String,
    pub(super) details: Details,
}

impl Candidate {
    pub(super) fn push(&mut self, choice: &Choice<'_>) -> serde_json::Result<()> {
        if let Some(delta) = &choice.delta {
            self.fold.push(delta)?;
        }
        keep_first(&mut self.finish, choice.finish_reason.as_ref());
        if let Some(json) = choice.logprobs {
            self.details.append("logprobs", json);
        }
        choice.rest.iter().for_each(|(name, json)| self.details.append(&name.0, json));
        Ok(())
    }

    /// The choice as it would have come whole in the response of this id.
    pub(super) fn into_value(self, response: &str) -> Value {
        let message = self.fold.json(response).ok().and_then(|json| parse(&json)).unwrap_or_default();
        further(self.index, message, &self.finish, self.details.into_fields(&Details::default()))
    }
}

pub(super) fn keep_first(known: &mut String, said: Option<&Str<'_>>) {
    if let Some(said) = said
        && known.is_empty()
    {
        known.push_str(&said.0);
    }
}
