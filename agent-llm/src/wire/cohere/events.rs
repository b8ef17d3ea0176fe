//! Responses: whole answers, and the events of streams.

use serde_json::value::RawValue;

use crate::wire::{lenient::Str, open_struct::open_struct};

open_struct! {
    /// An answer, or an event of one. `message` is a turn in an answer, and a text in an error.
    Frame {
        kind: Str<'a> = "type",
        index: u64 = "index",
        id: Str<'a> = "id",
        delta: Delta<'a> = "delta",
        message: &'a RawValue = "message",
        finish_reason: Str<'a> = "finish_reason",
        usage: &'a RawValue = "usage",
        logprobs: &'a RawValue = "logprobs",
        error: &'a RawValue = "error",
    }
}

open_struct! {
    /// Content of an event.
    Delta {
        message: &'a RawValue = "message",
        finish_reason: Str<'a> = "finish_reason",
        usage: &'a RawValue = "usage",
        error: &'a RawValue = "error",
    }
}

impl Frame<'_> {
    /// Returns true if the model or the server failed: nothing else in the event counts then.
    pub(super) fn is_error(&self) -> bool {
        let is_failed = |reason: &Option<Str<'_>>| reason.as_ref().is_some_and(|reason| reason.0 == "ERROR");
        let of_delta =
            self.delta.as_ref().is_some_and(|delta| delta.error.is_some() || is_failed(&delta.finish_reason));
        let says_why = self.message.is_some_and(|message| message.get().starts_with('"'));
        self.error.is_some() || says_why || of_delta || is_failed(&self.finish_reason)
    }
}
