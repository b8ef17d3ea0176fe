//! A count of prompts that is too high for ordinary text, for budgets without a counter.

use std::{io, sync::LazyLock};

use serde_json::Value;

use crate::{
    history::History,
    message::{Block, Message, Part, ServerCall, SystemMessage},
    tooling::{ToolSpec, ToolSpecs, WireKey},
};

/// Tokens of an image or a page of a document, with what stands around it.
const MEDIA: u64 = 3_000;
/// Around a message, a call or a tool.
const AROUND: u64 = 12;
/// Under which what was counted of tools is kept.
static KEY: LazyLock<WireKey> = LazyLock::new(|| WireKey::new(&"agent_core::budget::Generous"));

/// Counts more tokens than ordinary text has: one for every two bytes, and much for an image or a document.
///
/// Counts before every call, so that counting must not cost more as the conversation grows: what was counted of the
/// conversation before is known.
#[derive(Default)]
pub(crate) struct Generous {
    counted: History,
    tokens: u64,
}

impl Generous {
    /// Tokens of the whole prompt.
    pub(crate) fn prompt(&mut self, system: Option<&SystemMessage>, tools: &ToolSpecs, messages: &History) -> u64 {
        self.tokens = match messages.since(&self.counted) {
            Some(new) => self.tokens + new.map(message).sum::<u64>(),
            None => messages.iter().map(message).sum(),
        };
        self.counted = messages.clone();
        let system = system.map_or(0, |system| AROUND + parts(system.parts()));
        system + tools.total(*KEY, |specs| specs.iter().map(tool).sum()) + self.tokens
    }
}

fn text(text: &str) -> u64 {
    (text.len() as u64).div_ceil(2)
}

fn message(message: &Message) -> u64 {
    AROUND
        + match message {
            Message::System(m) => parts(m.parts()),
            Message::User(m) => parts(m.parts()),
            Message::Tool(m) => AROUND + parts(m.parts()),
            Message::Assistant(m) => m.blocks().iter().map(block).sum(),
        }
}

fn parts(parts: &[Part]) -> u64 {
    parts.iter().map(part).sum()
}

fn part(part: &Part) -> u64 {
    match part {
        Part::Text(t) => text(&t.text),
        Part::Image(_) | Part::Document(_) => MEDIA,
        Part::Other(raw) => text(raw.json()),
    }
}

fn block(block: &Block) -> u64 {
    match block {
        Block::Text(t) => text(&t.text),
        Block::Reasoning(r) => text(&r.text) + r.encrypted.as_deref().map_or(0, text),
        Block::ToolCall(call) => AROUND + text(&call.name) + text(&call.arguments),
        Block::Image(_) | Block::Document(_) => MEDIA,
        Block::Server(ServerCall { raw, .. }) | Block::Other(raw) => text(raw.json()),
    }
}

fn tool(tool: &ToolSpec) -> u64 {
    AROUND + text(&tool.name) + text(&tool.description) + length(&tool.parameters).div_ceil(2)
}

/// Bytes of the value as JSON, which is not made for that.
fn length(value: &Value) -> u64 {
    struct Length(u64);

    impl io::Write for Length {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len() as u64;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    let mut length = Length(0);
    serde_json::to_writer(&mut length, value).map_or(0, |()| length.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_prompt_that_goes_on_only_what_is_new_is_counted() {
        let mut count = Generous::default();
        let mut history = History::default();
        for n in 0..100 {
            history.push(Message::user("four")).expect("a user may speak");
            assert_eq!(count.prompt(None, &ToolSpecs::default(), &history), (AROUND + 2) * (n + 1));
            assert_eq!(count.prompt(None, &ToolSpecs::default(), &history), (AROUND + 2) * (n + 1));
        }
        count.tokens = 0; // what is known is not counted again
        history.push(Message::user("four")).expect("a user may speak");
        assert_eq!(count.prompt(None, &ToolSpecs::default(), &history), AROUND + 2);
        let another = history.iter().take(3).cloned();
        let another = History::from_messages(another).expect("no calls");
        assert_eq!(count.prompt(None, &ToolSpecs::default(), &another), (AROUND + 2) * 3, "another conversation");
    }
}
