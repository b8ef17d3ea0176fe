//! What servers say: whole answers, and the events of those that are streamed.

use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use super::choices::{Choices, Numbered};
use crate::wire::{
    lenient::{Content, Str},
    open_struct::open_struct,
};

open_struct! {
    /// An answer, or an event of one. What comes with every event of the great servers is named here, so that it costs no
    /// list.
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

open_struct! {
    /// One delta of a message.
    Delta {
        role: Str<'a> = "role",
        content: Content<'a> = "content",
        reasoning_content: Content<'a> = "reasoning_content",
        reasoning: Content<'a> = "reasoning",
        refusal: Str<'a> = "refusal",
        tool_calls: Vec<CallDelta<'a>> = "tool_calls",
    }
}

open_struct! {
    /// One delta of a call.
    CallDelta {
        index: u64 = "index",
        id: Str<'a> = "id",
        kind: Str<'a> = "type",
        function: FunctionDelta<'a> = "function",
    }
}

open_struct! {
    FunctionDelta { name: Str<'a> = "name", arguments: &'a RawValue = "arguments", }
}

impl Numbered for Choice<'_> {
    fn number(&self) -> u64 {
        self.index.unwrap_or(0)
    }
}
