//! Telling those who listen what a streamed message says, block by block.

use std::mem::{discriminant, replace};

use agent_core::{Block, Chunk};

use super::{
    fold::{Field, Item},
    read::{PARAGRAPH, name_calls},
};
use crate::wire::content::says_more_than_deltas;

/// Makes chunks of events.
///
/// A block has the number of blocks that were spoken of before it. Text and reasoning end when another block begins, calls
/// when their item ends; and at the end of the answer, what was spoken is made what the message is.
#[derive(Debug, Default)]
pub(super) struct Speaker {
    told: Vec<Told>,
}

/// A block that was spoken of.
#[derive(Debug)]
struct Told {
    item: usize,
    /// The part that was spoken last.
    part: Option<(Field, u64)>,
    /// Bytes of a call's arguments that were spoken.
    spoken: usize,
    /// The block as it stands; what it says is not looked at before its item ends.
    block: Block,
    settled: bool,
    ended: bool,
}

impl Speaker {
    /// An item begins.
    pub(super) fn begin(&mut self, at: usize, item: &Item, out: &mut Vec<Chunk>) {
        match &*item.head.kind {
            "reasoning" if self.index(at, None).is_none() => {
                // It has its place, even if nobody can read it.
                let index = self.open(at, Block::reasoning(""), out);
                out.push(Chunk::Reasoning { index, delta: String::new() });
            }
            "function_call" => self.call(at, item, Field::Arguments, out),
            "custom_tool_call" => self.call(at, item, Field::Input, out),
            _ => {}
        }
    }

    /// More of an item.
    pub(super) fn more(&mut self, at: usize, item: &Item, key: (Field, u64), delta: &str, out: &mut Vec<Chunk>) {
        if delta.is_empty() {
            return;
        }
        match key.0 {
            Field::Text => {
                let index = self.index(at, Some(key)).unwrap_or_else(|| self.open(at, Block::text(""), out));
                self.told[index as usize].part = Some(key);
                out.push(Chunk::Text { index, delta: delta.to_owned() });
            }
            Field::Summary | Field::Thought => {
                let index = self.index(at, None).unwrap_or_else(|| self.open(at, Block::reasoning(""), out));
                let before = replace(&mut self.told[index as usize].part, Some(key));
                let space = if before.is_some_and(|before| before != key) { PARAGRAPH } else { "" };
                out.push(Chunk::Reasoning { index, delta: format!("{space}{delta}") });
            }
            Field::Arguments | Field::Input => self.call(at, item, key.0, out),
            Field::Refusal => {} // told whole, when its item ends
        }
    }

    /// A call is spoken of once its name and its id are known.
    fn call(&mut self, at: usize, item: &Item, field: Field, out: &mut Vec<Chunk>) {
        let (id, name) = (&item.head.call_id, &item.head.name);
        let index = match self.index(at, None) {
            Some(index) => index,
            None if id.is_empty() || name.is_empty() => return,
            None => {
                let index = self.open(at, Block::tool_call(id.as_str(), name.as_str(), ""), out);
                out.push(Chunk::ToolCall { index, id: id.as_str().into(), name: name.as_str().into() });
                index
            }
        };
        let (told, text) = (&mut self.told[index as usize], item.text(field, 0));
        if let Some(delta) = text.get(told.spoken..).filter(|delta| !delta.is_empty()) {
            out.push(Chunk::Arguments { index, delta: delta.to_owned() });
            told.spoken = text.len();
        }
    }

    /// An item has ended, and these are its blocks. `response` is the id of the answer.
    pub(super) fn settle(
        &mut self,
        at: usize,
        item: &Item,
        mut blocks: Vec<Block>,
        response: &str,
        out: &mut Vec<Chunk>,
    ) {
        let calls = self.told.iter().filter(|told| matches!(told.block, Block::ToolCall(_)) && told.item != at);
        name_calls(&mut blocks, response, calls.count());
        let told: Vec<usize> = (0..self.told.len()).filter(|index| self.told[*index].item == at).collect();
        let mut told = told.into_iter();
        for block in blocks {
            match told.next() {
                Some(index) => self.settle_one(index, item, block, out),
                None => {
                    let index = self.open(at, block, out);
                    self.tell(index, out);
                }
            }
        }
    }

    /// Makes the block that was spoken of the one that it is.
    fn settle_one(&mut self, index: usize, item: &Item, block: Block, out: &mut Vec<Chunk>) {
        let (told, index) = (&mut self.told[index], index as u32);
        if discriminant(&told.block) != discriminant(&block) || told.settled {
            return; // mended at the end of the answer
        }
        let text = |key: Option<(Field, u64)>| key.map_or("", |(field, nth)| item.text(field, nth));
        let as_told = match (&told.block, &block) {
            (Block::Text(_), Block::Text(block)) => text(told.part) == block.text,
            (Block::ToolCall(was), Block::ToolCall(call)) => {
                let rest = match item.text(told_field(item), 0).get(..told.spoken) {
                    Some(spoken) => call.arguments.strip_prefix(spoken),
                    None => None,
                };
                if let Some(rest) = rest.filter(|rest| !rest.is_empty()) {
                    out.push(Chunk::Arguments { index, delta: rest.to_owned() });
                }
                rest.is_some() && (&was.id, &was.name) == (&call.id, &call.name)
            }
            _ => false,
        };
        if !as_told || says_more_than_deltas(&block) {
            out.push(Chunk::Block { index, block: block.clone() });
        }
        (told.block, told.settled) = (block, true);
        if !replace(&mut told.ended, true) {
            out.push(Chunk::End { index });
        }
    }

    /// The answer is complete, and these are its blocks: speaks what of them was not spoken yet, and ends every block.
    pub(super) fn finish(mut self, blocks: &[Block], out: &mut Vec<Chunk>) {
        let kinds = |told: &Told, block: &Block| discriminant(&told.block) == discriminant(block);
        if self.told.len() > blocks.len() || !self.told.iter().zip(blocks).all(|(told, block)| kinds(told, block)) {
            // What was spoken cannot be mended: a provider took something back, or its order.
            out.push(Chunk::Restart);
            self.told.clear();
        }
        for (index, block) in (0..).zip(blocks) {
            match self.told.get_mut(index as usize) {
                Some(told) => {
                    if !told.settled || told.block != *block {
                        out.push(Chunk::Block { index, block: block.clone() });
                    }
                    if !told.ended {
                        out.push(Chunk::End { index });
                    }
                }
                None => {
                    let index = self.open(usize::MAX, block.clone(), out);
                    self.tell(index, out);
                }
            }
        }
    }

    /// Speaks a block that came whole.
    fn tell(&mut self, index: u32, out: &mut Vec<Chunk>) {
        let told = &mut self.told[index as usize];
        let block = &told.block;
        match block {
            Block::Text(text) => out.push(Chunk::Text { index, delta: text.text.clone() }),
            Block::Reasoning(reasoning) => out.push(Chunk::Reasoning { index, delta: reasoning.text.clone() }),
            Block::ToolCall(call) => {
                out.push(Chunk::ToolCall { index, id: call.id.clone(), name: call.name.clone() });
                out.push(Chunk::Arguments { index, delta: call.arguments.clone() });
            }
            _ => {}
        }
        if says_more_than_deltas(block) {
            out.push(Chunk::Block { index, block: block.clone() });
        }
        out.push(Chunk::End { index });
        (told.settled, told.ended) = (true, true);
    }

    /// The block of an item, or of a part of it, if it was spoken of.
    fn index(&self, at: usize, part: Option<(Field, u64)>) -> Option<u32> {
        let is_it = |told: &Told| told.item == at && (part.is_none() || told.part == part);
        self.told.iter().rposition(is_it).and_then(|index| u32::try_from(index).ok())
    }

    /// A new block, which ends the text or reasoning before it.
    fn open(&mut self, item: usize, block: Block, out: &mut Vec<Chunk>) -> u32 {
        for (index, told) in (0..).zip(&mut self.told) {
            if !told.ended && matches!(told.block, Block::Text(_) | Block::Reasoning(_)) {
                told.ended = true;
                out.push(Chunk::End { index });
            }
        }
        self.told.push(Told { item, part: None, spoken: 0, block, settled: false, ended: false });
        (self.told.len() - 1) as u32
    }
}

/// The field that a call's arguments come in.
fn told_field(item: &Item) -> Field {
    if item.head.kind == "custom_tool_call" { Field::Input } else { Field::Arguments }
}
