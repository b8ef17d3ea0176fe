//! Conversations of two roles, as Anthropic's and Amazon's APIs have them.
//!
//! What tools and users say between two turns of the assistant is one message: its results first, then the words. What is
//! written of a message depends on the message before it, and never on those after it, so that it can be kept: each says how
//! the one before it ends.

pub(crate) mod fold;
#[cfg(feature = "requests")]
pub(crate) mod reading;
mod turn;

use std::borrow::Cow;

use agent_core::{
    AssistantMessage, Block, History, Message, Part, SystemMessage, Text, ToolCall,
    message::{Cache, Origin, Reasoning},
};
use serde::Serialize;
use serde_json::value::RawValue;

use super::{
    body::Draft,
    content::EMPTY,
    json::{knows, own, write},
};

/// How a wire of two roles writes what is said.
pub(crate) trait TwoRoles {
    /// A block of a message.
    type Block<'a>: Serialize + Words<'a>;

    /// Who is written to.
    fn origin(&self) -> &Origin;

    /// What the message at `at` says, which is not the assistant's. The id of a result is written as it is if its call was,
    /// which `keeps_ids` says.
    fn blocks<'a>(&self, at: usize, message: &'a Message, keeps_ids: bool) -> Vec<Self::Block<'a>>;

    /// What stands where something must.
    fn nothing<'a>() -> Self::Block<'a> {
        Self::plain(EMPTY)
    }

    /// The blocks of a turn of the assistant's in the provider's own JSON.
    ///
    /// # Errors
    /// If it is none.
    fn read_turn(json: &str, origin: &Origin) -> serde_json::Result<Vec<Block>>;

    /// A block of such a turn.
    fn read(json: &str, origin: &Origin) -> Block;

    /// A block in the provider's own JSON.
    fn own(json: &RawValue) -> Self::Block<'_>;

    /// Words without anything else.
    fn plain(text: &str) -> Self::Block<'_>;

    /// A text of the assistant's; none if it says nothing.
    fn text<'a>(&self, text: &'a Text) -> Option<Self::Block<'a>>;

    /// Thinking, without its own JSON.
    fn reasoning(reasoning: &Reasoning) -> Self::Block<'_>;

    /// False for thinking that the API does not take, though the provider said it.
    fn is_sendable(_: &Block) -> bool {
        true
    }

    /// A call under this id.
    fn call<'a>(id: Cow<'a, str>, call: &'a ToolCall) -> Self::Block<'a>;

    /// The id of another provider's call, as the API takes ids.
    fn id(id: &str) -> Cow<'_, str>;
}

/// A block that may be words.
pub(crate) trait Words<'a> {
    /// What it says, if it is a text.
    fn words(&mut self) -> Option<&mut Cow<'a, str>>;
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
pub(crate) fn write_messages(history: &History, wire: &impl TwoRoles, out: &mut Draft) {
    let messages = Messages { wire, history };
    out.push(b'[');
    out.messages(history, |at, message, out| messages.write(at, message, out));
    if history.last().is_some_and(|last| messages.form(last) == Form::Joined) {
        out.extend_from_slice(CLOSE);
    }
    out.push(b']');
}

/// Instructions inside the conversation as the user's words: not all models take them elsewhere.
pub(crate) fn instructions(message: &SystemMessage) -> String {
    format!("<system>\n{}\n</system>", message.text())
}

/// How long instructions inside the conversation are kept: as their last text that says so.
pub(crate) fn mark(message: &SystemMessage) -> Option<Cache> {
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
    wire: &'a W,
    history: &'a History,
}

impl<W: TwoRoles> Messages<'_, W> {
    fn form(&self, message: &Message) -> Form {
        let raw = match message {
            Message::Assistant(_) => return Form::Apart,
            Message::Tool(_) => return Form::Joined,
            Message::User(message) => message.raw(),
            Message::System(message) => message.raw(),
        };
        if own(self.wire.origin(), raw).is_some() { Form::Apart } else { Form::Joined }
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
            Message::Assistant(message) => return turn::write(self.wire, message, out),
            Message::User(message) => message.raw(),
            Message::System(message) => message.raw(),
            Message::Tool(_) => None,
        };
        out.extend(raw.iter().flat_map(|raw| raw.json().as_bytes()));
    }

    /// The first message of several has something to say, whatever it is; the others may have nothing.
    fn write_blocks(&self, at: usize, message: &Message, goes_on: bool, out: &mut Vec<u8>) {
        let keeps_ids = keeps_ids(self.wire.origin(), self.history, at);
        let blocks = self.wire.blocks(at, message, keeps_ids);
        let filler = (blocks.is_empty() && !goes_on).then(W::nothing);
        for (nth, block) in blocks.iter().enumerate() {
            if goes_on || nth > 0 {
                out.push(b',');
            }
            write(block, out);
        }
        if let Some(filler) = filler {
            write(&filler, out);
        }
    }
}
