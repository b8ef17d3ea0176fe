//! Conversations of two roles, as Anthropic's and Amazon's APIs have them.
//!
//! What tools and users say between two turns of the assistant is one message: its results first, then the words. What is
//! written of a message depends on the message before it, and never on those after it, so that it can be kept: each says how
//! the one before it ends.

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
use sha2::{Digest, Sha256};

use super::{
    body::Draft,
    content::EMPTY,
    ids::plain_id,
    json::{knows, own, write},
    lenient::Content,
};
#[cfg(feature = "requests")]
use super::{lenient::Str, two_roles::reading::Answer};

/// How a wire of two roles says what is said.
pub(crate) trait TwoRoles {
    /// A block of a message, as it is written.
    type Block<'a>: Serialize;

    /// A block of the assistant's, read. What is not understood is kept as it came.
    fn read(json: &RawValue, origin: &Origin) -> Block;

    /// A block in the provider's own JSON.
    fn own(json: &RawValue) -> Self::Block<'_>;

    /// Words without anything else, up to which the prompt is cached, if blocks are marked themselves.
    fn plain(text: Cow<'_, str>, cache: Option<Cache>) -> Self::Block<'_>;

    /// The block that says that the prompt is cached up to it, of an API that has such blocks.
    fn mark<'a>(_cache: Cache) -> Option<Self::Block<'a>> {
        None
    }

    /// A text; none if it says nothing.
    fn text<'a>(origin: &Origin, text: &'a Text) -> Option<Self::Block<'a>>;

    /// What these parts of the message at `at` say.
    fn parts<'a>(origin: &Origin, at: usize, parts: &'a [Part]) -> Vec<Self::Block<'a>>;

    /// Thinking, without its own JSON.
    fn reasoning(reasoning: &Reasoning) -> Self::Block<'_>;

    /// False for thinking that the API does not take, though the provider said it.
    fn is_sendable(_: &Block) -> bool {
        true
    }

    /// A call under this id.
    fn call<'a>(id: Cow<'a, str>, call: &'a ToolCall) -> Self::Block<'a>;

    /// The result of the call of this id, which says `content`.
    fn result<'a>(id: Cow<'a, str>, content: Vec<Self::Block<'a>>, is_error: bool) -> Vec<Self::Block<'a>>;

    /// The parts of a content that is not the assistant's, read.
    #[cfg(feature = "requests")]
    fn read_parts(content: &[&RawValue], origin: &Origin) -> Vec<Part>;

    /// The result that this block is, read; none if it is no result.
    #[cfg(feature = "requests")]
    fn read_result(json: &RawValue, origin: &Origin) -> Option<Answer>;
}

/// What stands where something must.
fn nothing<'a, W: TwoRoles>() -> W::Block<'a> {
    W::plain(EMPTY.into(), None)
}

/// The id of another provider's call: of letters, digits, `_` and `-`, and short.
fn id(id: &str) -> Cow<'_, str> {
    /// More is refused.
    const MOST: usize = 64;
    match plain_id(id) {
        id if id.len() <= MOST => id,
        long => Sha256::digest(&*long).iter().map(|byte| format!("{byte:02x}")).collect(),
    }
}

/// What somebody said: a text or blocks.
#[derive(Deserialize)]
struct Spoken<'a> {
    #[cfg(feature = "requests")]
    #[serde(borrow)]
    role: Option<Str<'a>>,
    #[serde(borrow)]
    content: Option<Content<'a>>,
}

/// The blocks of the assistant's message, or of its messages in a list.
///
/// # Errors
/// If it is no message.
fn read_turn<W: TwoRoles>(json: &str, origin: &Origin) -> serde_json::Result<Vec<Block>> {
    let messages: Vec<Spoken<'_>> =
        if json.starts_with('[') { serde_json::from_str(json)? } else { vec![serde_json::from_str(json)?] };
    let blocks = messages.iter().flat_map(|message| match &message.content {
        Some(Content::Text(text)) => vec![Block::text(&**text)],
        Some(Content::Parts(parts)) => parts.iter().map(|json| W::read(json, origin)).collect(),
        None => Vec::new(),
    });
    Ok(blocks.filter(|block| !says_nothing(block)).collect())
}

/// True for a text without words, which APIs send and do not take back, and for thinking without anything.
fn says_nothing(block: &Block) -> bool {
    match block {
        Block::Text(text) => text.text.is_empty() && text.citations.is_empty(),
        Block::Reasoning(reasoning) => *reasoning == Reasoning::default(),
        _ => false,
    }
}

/// Why an answer ended, which is `message`.
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

/// How a message is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// As an object of its own.
    Apart,
    /// As blocks of the user's message, which the next may go on with.
    Joined,
}

const OPEN: &[u8] = br#"{"role":"user","content":["#;
const CLOSE: &[u8] = b"]}";

/// Writes the conversation as a JSON list.
pub(crate) fn write_messages<W: TwoRoles>(history: &History, origin: &Origin, out: &mut Draft) {
    let messages = Messages::<W> { origin, history, wire: PhantomData };
    out.push(b'[');
    out.messages(history, |at, message, out| messages.write(at, message, out));
    if history.last().is_some_and(|last| messages.form(last) == Form::Joined) {
        out.extend_from_slice(CLOSE);
    }
    out.push(b']');
}

/// Instructions inside the conversation as the user's words: not all models take them elsewhere.
fn instructions(message: &SystemMessage) -> String {
    format!("<system>\n{}\n</system>", message.text())
}

/// How long instructions inside the conversation are kept: as their last text that says so.
fn mark(message: &SystemMessage) -> Option<Cache> {
    message.parts().iter().rev().find_map(|part| match part {
        Part::Text(text) => text.cache,
        _ => None,
    })
}

/// True if the id of the result at `at` is written as its call's is: it is the provider's own.
pub(crate) fn keeps_ids(origin: &Origin, history: &History, at: usize) -> bool {
    asked(history, at).and_then(AssistantMessage::raw).is_some_and(|raw| knows(origin, raw))
}

/// The message whose call the result at `at` answers.
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

impl<W: TwoRoles> Messages<'_, W> {
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

    /// The first message of several has something to say, whatever it is; the others may have nothing.
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

    /// What the message at `at` says, which is not the assistant's. The id of a result is written as it is if its call's was.
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
            content.push(nothing::<W>()); // no API takes a failure without a word
        }
        let call = result.call_id();
        let call = if keeps_ids(self.origin, self.history, at) { Cow::Borrowed(call) } else { id(call) };
        W::result(call, content, result.is_error())
    }
}
