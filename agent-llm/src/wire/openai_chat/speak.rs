//! Telling those who listen what a streamed message says, block by block.

use std::{borrow::Cow, collections::VecDeque};

use agent_core::{Block, Chunk, message::Origin};

use super::{
    fold::Delta,
    fold_call::CallFold,
    read::details_text,
    read_part::{part, plain},
};
use crate::wire::{content::says_more_than_deltas, lenient::Content};

/// Makes chunks of deltas.
///
/// A message has one text block and one reasoning block, however often the model goes back to one of them; only a content
/// that is a list of parts may have more. Such a block ends when another begins. Calls end with the message: their deltas
/// may come mixed.
#[derive(Debug, Default)]
pub(super) struct Speaker {
    /// Blocks so far.
    blocks: u32,
    texts: VecDeque<u32>,
    thoughts: VecDeque<u32>,
    /// Parts of the content that come whole.
    others: VecDeque<u32>,
    /// The content is a list of parts.
    in_parts: bool,
    /// The text or reasoning block under way.
    open: Option<u32>,
    calls: Vec<SpokenCall>,
    spelling: Option<Spelling>,
}

#[derive(Debug)]
struct SpokenCall {
    index: u32,
    /// Bytes of the arguments that were spoken.
    spoken: usize,
}

#[derive(Clone, Copy)]
enum Kind {
    Text,
    Reasoning,
}

/// Servers that send reasoning in two spellings say it twice: only the first is spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Spelling {
    Content,
    Plain,
    Details,
}

impl Speaker {
    /// Speaks `delta`, with which `calls` have come so far.
    pub(super) fn delta(
        &mut self,
        delta: &Delta<'_>,
        calls: &[CallFold],
        origin: &Origin,
        out: &mut Vec<Chunk>,
    ) -> serde_json::Result<()> {
        self.think_aloud(delta, out)?;
        match &delta.content {
            Some(Content::Text(text)) => self.say(text, out),
            Some(Content::Parts(parts)) => {
                self.in_parts = true;
                for json in parts {
                    match part(json, origin)? {
                        Block::Text(text) => self.say(&text.text, out),
                        Block::Reasoning(reasoning) => self.think(&reasoning.text, out),
                        other => self.place(other, out),
                    }
                }
            }
            None => {}
        }
        if delta.tool_calls.is_some() {
            self.call(calls, out);
        }
        Ok(())
    }

    fn think_aloud(&mut self, delta: &Delta<'_>, out: &mut Vec<Chunk>) -> serde_json::Result<()> {
        let details = delta.rest.iter().find(|(name, _)| name.0 == "reasoning_details");
        let details = details.and_then(|(_, json)| details_text(json));
        for spelling in [Spelling::Content, Spelling::Plain, Spelling::Details] {
            if self.spelling.is_some_and(|chosen| chosen != spelling) {
                continue;
            }
            let said = match spelling {
                Spelling::Content => delta.reasoning_content.as_ref().map(plain).transpose()?,
                Spelling::Plain => delta.reasoning.as_ref().map(plain).transpose()?,
                Spelling::Details => details.as_deref().map(Cow::Borrowed),
            };
            if let Some(said) = said.filter(|said| !said.is_empty()) {
                self.spelling = Some(spelling);
                self.think(&said, out);
            }
        }
        if details.is_some() && self.thoughts.is_empty() {
            // Thinking that only the provider can read: the block has its place all the same.
            let index = self.block(Kind::Reasoning, out);
            out.push(Chunk::Reasoning { index, delta: String::new() });
        }
        Ok(())
    }

    fn think(&mut self, delta: &str, out: &mut Vec<Chunk>) {
        if !delta.is_empty() {
            let index = self.block(Kind::Reasoning, out);
            out.push(Chunk::Reasoning { index, delta: delta.to_owned() });
        }
    }

    fn say(&mut self, delta: &str, out: &mut Vec<Chunk>) {
        if !delta.is_empty() {
            let index = self.block(Kind::Text, out);
            out.push(Chunk::Text { index, delta: delta.to_owned() });
        }
    }

    fn place(&mut self, block: Block, out: &mut Vec<Chunk>) {
        self.turn_to(None, out);
        let index = next(&mut self.blocks);
        self.others.push_back(index);
        out.extend([Chunk::Block { index, block }, Chunk::End { index }]);
    }

    /// Opens the block that the next delta of this kind belongs to.
    fn block(&mut self, kind: Kind, out: &mut Vec<Chunk>) -> u32 {
        let known = match kind {
            Kind::Text => &mut self.texts,
            Kind::Reasoning => &mut self.thoughts,
        };
        let goes_on = |index: &&u32| !self.in_parts || self.open == Some(**index);
        let index = match known.back().filter(goes_on) {
            Some(index) => *index,
            None => {
                known.push_back(next(&mut self.blocks));
                self.blocks - 1
            }
        };
        self.turn_to(Some(index), out);
        index
    }

    /// A call is spoken of once it [can be](CallFold::can_be_spoken). The calls before it come first.
    fn call(&mut self, calls: &[CallFold], out: &mut Vec<Chunk>) {
        for (at, call) in calls.iter().enumerate() {
            if at == self.calls.len() {
                if !call.can_be_spoken(at + 1 < calls.len()) {
                    break;
                }
                self.turn_to(None, out);
                self.calls.push(SpokenCall::begin(next(&mut self.blocks), &call.id, &call.name, out));
            }
            self.calls[at].go_on(&call.arguments, out);
        }
    }

    /// Ends the open block unless it is this one.
    fn turn_to(&mut self, block: Option<u32>, out: &mut Vec<Chunk>) {
        if let Some(index) = self.open.filter(|open| Some(*open) != block) {
            out.push(Chunk::End { index });
        }
        self.open = block;
    }

    /// Speaks what of the whole message was not spoken yet, and ends every block.
    pub(super) fn finish(mut self, blocks: &[Block], out: &mut Vec<Chunk>) {
        self.turn_to(None, out);
        let mut calls = self.calls.into_iter();
        for block in blocks {
            let spoken = match block {
                Block::Text(_) => self.texts.pop_front(),
                Block::Reasoning(_) => self.thoughts.pop_front(),
                Block::ToolCall(call) => {
                    let mut spoken = calls
                        .next()
                        .unwrap_or_else(|| SpokenCall::begin(next(&mut self.blocks), &call.id, &call.name, out));
                    spoken.go_on(&call.arguments, out);
                    Some(spoken.index)
                }
                _ => self.others.pop_front(),
            };
            let index = spoken.unwrap_or_else(|| next(&mut self.blocks));
            if spoken.is_none() || says_more_than_deltas(block) {
                out.push(Chunk::Block { index, block: block.clone() });
            }
            if spoken.is_none() || matches!(block, Block::ToolCall(_)) {
                out.push(Chunk::End { index });
            }
        }
    }
}

impl SpokenCall {
    fn begin(index: u32, id: &str, name: &str, out: &mut Vec<Chunk>) -> Self {
        out.push(Chunk::ToolCall { index, id: id.into(), name: name.into() });
        Self { index, spoken: 0 }
    }

    fn go_on(&mut self, arguments: &str, out: &mut Vec<Chunk>) {
        if let Some(delta) = arguments.get(self.spoken..).filter(|delta| !delta.is_empty()) {
            out.push(Chunk::Arguments { index: self.index, delta: delta.to_owned() });
            self.spoken = arguments.len();
        }
    }
}

fn next(blocks: &mut u32) -> u32 {
    *blocks += 1;
    *blocks - 1
}
