//! Conversations with alternating roles, as in Anthropic's and Amazon's APIs.
//!
//! All tool results and user messages between two turns of the assistant form one message: first
//! the results, then the texts. The encoding of a message depends on the message before it, and
//! never on later ones, so that it can be reused: each message closes the one before it.

pub(crate) mod fold;
#[cfg(feature = "requests")]
pub(crate) mod reading;
mod turn;

use std::{borrow::Cow, marker::PhantomData};

use agent_core::{
    AssistantMessage, Block, FinishReason, History, Message, Part, SystemMessage, Text, ToolCall, ToolMessage,
    message::{Cache, Origin, Reasoning},
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

#[cfg(feature = "requests")]
use super::{alternating_roles::reading::Answer, lenient::Str};
use super::{
    body::Draft,
    content::EMPTY,
    json::{own, write},
    lenient::Content,
};

/// Block format of a wire with alternating roles.
pub(crate) trait AlternatingRoles {
    /// An encoded block.
    type Block<'a>: Serialize;

    /// Decodes a block of the assistant. Unknown blocks are kept raw.
    fn read(json: &RawValue, origin: &Origin) -> Block;

    /// Wraps a block in the provider's own JSON.
    fn own(json: &RawValue) -> Self::Block<'_>;

    /// Encodes a plain text, with a cache marker if the API marks blocks.
    fn plain(text: Cow<'_, str>, cache: Option<Cache>) -> Self::Block<'_>;

    /// Returns the block that marks the end of a cached prefix, if the API has such blocks.
    fn mark<'a>(_cache: Cache) -> Option<Self::Block<'a>> {
        None
    }

    /// Encodes a text; `None` if it is empty.
    fn text<'a>(origin: &Origin, text: &'a Text) -> Option<Self::Block<'a>>;

    /// Encodes these parts of the message at `at`.
    fn parts<'a>(origin: &Origin, at: usize, parts: &'a [Part]) -> Vec<Self::Block<'a>>;

    /// Encodes reasoning without its own JSON.
    fn reasoning(reasoning: &Reasoning) -> Self::Block<'_>;

    /// Returns false for reasoning that the API rejects even from itself.
    fn is_sendable(_: &Block) -> bool {
        true
    }

    /// Encodes a call.
    fn call(call: &ToolCall) -> Self::Block<'_>;

    /// Encodes the result of the call with this id.
    fn result<'a>(id: &'a str, content: Vec<Self::Block<'a>>, is_error: bool) -> Vec<Self::Block<'a>>;

    /// Decodes the parts of a content that is not the assistant's.
    #[cfg(feature = "requests")]
    fn read_parts(content: &[&RawValue], origin: &Origin) -> Vec<Part>;

    /// Decodes a result block; `None` for any other block.
    #[cfg(feature = "requests")]
    fn read_result(json: &RawValue, origin: &Origin) -> Option<Answer>;
}

/// Returns the placeholder for content that must not be empty.
fn nothing<'a, W: AlternatingRoles>() -> W::Block<'a> {
    W::plain(EMPTY.into(), None)
}

/// A message: a text or blocks.
#[derive(Deserialize)]
struct Spoken<'a> {
    #[cfg(feature = "requests")]
    #[serde(borrow)]
    role: Option<Str<'a>>,
    #[serde(borrow)]
    content: Option<Content<'a>>,
}

/// Decodes the blocks of the assistant's message, or of its messages in a list.
///
/// # Errors
/// If the JSON is not a message.
fn read_turn<W: AlternatingRoles>(json: &str, origin: &Origin) -> serde_json::Result<Vec<Block>> {
    let messages: Vec<Spoken<'_>> =
        if json.starts_with('[') { serde_json::from_str(json)? } else { vec![serde_json::from_str(json)?] };
    let blocks = messages.iter().flat_map(|message| match &message.content {
        Some(Content::Text(text)) => vec![Block::text(&**text)],
        Some(Content::Parts(parts)) => parts.iter().map(|json| W::read(json, origin)).collect(),
        None => Vec::new(),
    });
    Ok(blocks.filter(|block| !says_nothing(block)).collect())
}

/// Returns true for an empty text, which APIs send but do not accept, and for empty reasoning.
fn says_nothing(block: &Block) -> bool {
    match block {
        Block::Text(text) => text.text.is_empty() && text.citations.is_empty(),
        Block::Reasoning(reasoning) => *reasoning == Reasoning::default(),
        _ => false,
    }
}

/// Maps the stop reason of `message`.
pub(crate) fn finish(reason: &str, message: &AssistantMessage) -> FinishReason {
    match reason {
        "" | "end_turn" | "tool_use" if message.has_calls() => FinishReason::ToolCalls,
        "tool_use" => FinishReason::ToolCalls,
        "" | "end_turn" | "stop_sequence" => FinishReason::Stop,
        "max_tokens" | "model_context_window_exceeded" => FinishReason::Length,
        "refusal" | "guardrail_intervened" | "content_filtered" => FinishReason::ContentFilter,
        "pause_turn" => FinishReason::Paused,
        other => FinishReason::Other(other.to_owned()),
    }
}

/// Encoding of a message.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// As a separate object.
    Apart,
    /// As blocks of the user's message, which the next message may continue.
    Joined,
}

const OPEN: &[u8] = br#"{"role":"user","content":["#;
const CLOSE: &[u8] = b"]}";

/// Writes the conversation as a JSON list.
pub(crate) fn write_messages<W: AlternatingRoles>(history: &History, origin: &Origin, out: &mut Draft) {
    let messages = Messages::<W> { origin, history, wire: PhantomData };
    out.push(b'[');
    out.messages(history, |at, message, out| messages.write(at, message, out));
    if history.last().is_some_and(|last| messages.form(last) == Form::Joined) {
        out.extend_from_slice(CLOSE);
    }
    out.push(b']');
}

/// Encodes instructions inside the conversation as a user's text, since not all models support
/// other positions.
fn instructions(message: &SystemMessage) -> String {
    format!("<system>\n{}\n</system>", message.text())
}

/// Returns the cache marker of instructions inside the conversation: that of their last text with
/// one.
fn mark(message: &SystemMessage) -> Option<Cache> {
    message.parts().iter().rev().find_map(|part| match part {
        Part::Text(text) => text.cache,
        _ => None,
    })
}

/// Returns the message whose call the result at `at` answers.
pub(crate) fn asked(history: &History, at: usize) -> Option<&AssistantMessage> {
    history.get(at)?.as_tool()?;
    let before = (0..at).rev().filter_map(|at| history.get(at));
    let mut before = before.skip_while(|message| message.as_tool().is_some());
    before.next()?.as_assistant()
}

struct Messages<'a, W> {
    origin: &'a Origin,
    history: &'a History,
    wire: PhantomData<W>,
}

impl<W: AlternatingRoles> Messages<'_, W> {
    fn form(&self, message: &Message) -> Form {
        let raw = match message {
            Message::Assistant(_) => return Form::Apart,
            Message::Tool(_) => return Form::Joined,
            Message::User(message) => message.raw(),
            Message::System(message) => message.raw(),
        };
        if own(self.origin, raw).is_some() { Form::Apart } else { Form::Joined }
    }

    fn write(&self, at: usize, message: &Message, out: &mut Vec<u8>) {
        let before = at.checked_sub(1).and_then(|before| self.history.get(before)).map(|before| self.form(before));
        let form = self.form(message);
        if (before, form) == (Some(Form::Joined), Form::Joined) {
            return self.write_blocks(at, message, true, out);
        }
        match before {
            Some(Form::Joined) => out.extend_from_slice(b"]},"),
            Some(Form::Apart) => out.push(b','),
            None => {}
        }
        match form {
            Form::Joined => {
                out.extend_from_slice(OPEN);
                self.write_blocks(at, message, false, out);
            }
            Form::Apart => self.write_apart(message, out),
        }
    }

    fn write_apart(&self, message: &Message, out: &mut Vec<u8>) {
        let raw = match message {
            Message::Assistant(message) => return turn::write::<W>(self.origin, message, out),
            Message::User(message) => message.raw(),
            Message::System(message) => message.raw(),
            Message::Tool(_) => None,
        };
        out.extend(raw.iter().flat_map(|raw| raw.json().as_bytes()));
    }

    /// Writes a message's blocks. The first of several joined messages must not be empty; the
    /// others may be.
    fn write_blocks(&self, at: usize, message: &Message, goes_on: bool, out: &mut Vec<u8>) {
        let mut blocks = self.blocks(at, message);
        if blocks.is_empty() && !goes_on {
            blocks.push(nothing::<W>());
        }
        for (nth, block) in blocks.iter().enumerate() {
            if goes_on || nth > 0 {
                out.push(b',');
            }
            write(block, out);
        }
    }

    /// Encodes the message at `at`, which is not the assistant's.
    fn blocks<'a>(&self, at: usize, message: &'a Message) -> Vec<W::Block<'a>> {
        match message {
            Message::Tool(result) => self.result(at, result),
            Message::User(message) => W::parts(self.origin, at, message.parts()),
            Message::System(message) => {
                let cache = mark(message);
                let words = W::plain(instructions(message).into(), cache);
                std::iter::once(words).chain(cache.and_then(W::mark)).collect()
            }
            Message::Assistant(_) => Vec::new(),
        }
    }

    fn result<'a>(&self, at: usize, result: &'a ToolMessage) -> Vec<W::Block<'a>> {
        if let Some(own) = own(self.origin, result.raw()) {
            return vec![W::own(own)];
        }
        let mut content = W::parts(self.origin, at, result.parts());
        if content.is_empty() && result.is_error() {
            content.push(nothing::<W>()); // no API accepts an empty failure
        }
        W::result(result.call_id(), content, result.is_error())
    }
}
