//! Writing the conversation.
//!
//! The API has two roles. What tools and users say between two turns of the assistant is one message: its results first,
//! then the words. What is written of a message depends on the message before it, and never on those after it, so that it
//! can be kept: each says how the one before it ends.

use std::borrow::Cow;

use agent_core::{AssistantMessage, History, Message, Part, SystemMessage, ToolMessage, message::Origin};

use super::{
    assistant,
    parts::{BlockJson, Content, EMPTY, part_json, plain},
};
use crate::wire::{
    body::Draft,
    cache_control::CacheControl,
    json::{own, write},
};

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
pub(super) fn write_messages(history: &History, origin: &Origin, out: &mut Draft) {
    let messages = Messages { origin, history };
    out.push(b'[');
    out.messages(history, |at, message, out| messages.write(at, message, out));
    if history.last().is_some_and(|last| messages.form(last) == Form::Joined) {
        out.extend_from_slice(CLOSE);
    }
    out.push(b']');
}

struct Messages<'a> {
    origin: &'a Origin,
    history: &'a History,
}

impl Messages<'_> {
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
            Message::Assistant(message) => return assistant::write(self.origin, message, out),
            Message::User(message) => message.raw(),
            Message::System(message) => message.raw(),
            Message::Tool(_) => None,
        };
        out.extend(raw.iter().flat_map(|raw| raw.json().as_bytes()));
    }

    /// The first message of several has something to say, whatever it is; the others may have nothing.
    fn write_blocks(&self, at: usize, message: &Message, goes_on: bool, out: &mut Vec<u8>) {
        let blocks: Vec<BlockJson<'_>> = match message {
            Message::Tool(result) => vec![self.result(at, result)],
            Message::User(message) => self.spoken(message.parts()).collect(),
            // Not all models take instructions in the conversation: they are told in the user's message.
            Message::System(message) => vec![instructions(message)],
            Message::Assistant(_) => Vec::new(),
        };
        let filler = (blocks.is_empty() && !goes_on).then(|| plain(EMPTY));
        for (nth, block) in blocks.iter().chain(&filler).enumerate() {
            if goes_on || nth > 0 {
                out.push(b',');
            }
            write(block, out);
        }
    }

    fn spoken<'a>(&self, parts: &'a [Part]) -> impl Iterator<Item = BlockJson<'a>> {
        parts.iter().filter_map(|part| part_json(self.origin, part))
    }

    fn result<'a>(&self, at: usize, result: &'a ToolMessage) -> BlockJson<'a> {
        if let Some(own) = own(self.origin, result.raw()) {
            return BlockJson::Raw(own);
        }
        let content = match result.parts() {
            [Part::Text(text)] if text.raw.is_none() && text.cache.is_none() && !text.text.trim().is_empty() => {
                Some(Content::Text(&text.text))
            }
            parts => {
                Some(self.spoken(parts).collect()).filter(|blocks: &Vec<_>| !blocks.is_empty()).map(Content::Blocks)
            }
        };
        // The API takes no failure without a word.
        let content = content.or(result.is_error().then_some(Content::Text(EMPTY)));
        let id = result.call_id();
        let keeps_ids = self.asked(at).is_some_and(|asked| assistant::keeps_ids(self.origin, asked));
        let tool_use_id = if keeps_ids { Cow::Borrowed(id) } else { assistant::id(id) };
        BlockJson::ToolResult { tool_use_id, content, is_error: result.is_error() }
    }

    /// The message whose call the result at `at` answers.
    fn asked(&self, at: usize) -> Option<&AssistantMessage> {
        let before = (0..at).rev().filter_map(|at| self.history.get(at));
        let mut before = before.skip_while(|message| message.as_tool().is_some());
        before.next()?.as_assistant()
    }
}

fn instructions(message: &SystemMessage) -> BlockJson<'static> {
    let cache = message.parts().iter().rev().find_map(|part| match part {
        Part::Text(text) => text.cache,
        _ => None,
    });
    let text = format!("<system>\n{}\n</system>", message.text());
    BlockJson::Text { text: text.into(), cache_control: cache.map(CacheControl::from) }
}
