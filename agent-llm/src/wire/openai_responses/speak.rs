//! Telling those who listen what a streamed message says, block by block.

use std::mem::{discriminant, replace};

use agent_core::{
    Block, Chunk,
    message::{Origin, Raw},
};

use super::{
    fold::{Field, Fold, Item},
    read::{PARAGRAPH, name_calls},
};
use crate::wire::content::says_more_than_deltas;

/// The item of blocks that are told when all items have ended.
const NO_ITEM: usize = usize::MAX;

/// Makes chunks of events.
///
/// A block has the number of blocks that were spoken of before it. Text and reasoning end when another block begins, calls
/// when their item ends; and at the end of the answer, what was spoken is made what the message is.
#[derive(Debug)]
pub(super) struct Speaker {
    origin: Origin,
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
    pub(super) fn new(origin: Origin) -> Self {
        Self { origin, told: Vec::new() }
    }

    /// An item begins.
    pub(super) fn begin(&mut self, at: usize, fold: &Fold, out: &mut Vec<Chunk>) {
        match &*fold.items()[at].head.kind {
            "reasoning" if self.index(at, None).is_none() => {
                // It has its place, even if nobody can read it.
                let index = self.open(at, fold, Block::reasoning(""), out);
                out.push(Chunk::Reasoning { index, delta: String::new() });
            }
            "function_call" | "custom_tool_call" => self.call(at, fold, out),
            _ => {}
        }
    }

    /// More of an item.
    pub(super) fn more(&mut self, at: usize, fold: &Fold, key: (Field, u64), delta: &str, out: &mut Vec<Chunk>) {
        if delta.is_empty() {
            return;
        }
        match key.0 {
            Field::Text => {
                let index = self.index(at, Some(key)).unwrap_or_else(|| self.open(at, fold, Block::text(""), out));
                self.told[index as usize].part = Some(key);
                out.push(Chunk::Text { index, delta: delta.to_owned() });
            }
            Field::Summary | Field::Thought => {
                let index = match self.index(at, None) {
                    None => self.open(at, fold, Block::reasoning(""), out),
                    Some(index) if matches!(self.told[index as usize].block, Block::Reasoning(_)) => index,
                    Some(_) => return, // an item of another kind: told at the end of the answer
                };
                let before = self.told[index as usize].part.replace(key);
                let space = if before.is_some_and(|before| before != key) { PARAGRAPH } else { "" };
                out.push(Chunk::Reasoning { index, delta: format!("{space}{delta}") });
            }
            Field::Arguments | Field::Input => self.call(at, fold, out),
            Field::Refusal => {} // told whole, when its item ends
        }
    }

    /// A call is spoken of once its name and its id are known.
    fn call(&mut self, at: usize, fold: &Fold, out: &mut Vec<Chunk>) {
        let item = &fold.items()[at];
        let (id, name) = (&item.head.call_id, &item.head.name);
        let index = match self.index(at, None) {
            Some(index) => index,
            None if id.is_empty() || name.is_empty() => return,
            None => {
                let index = self.open(at, fold, Block::tool_call(id.as_str(), name.as_str(), ""), out);
                out.push(Chunk::ToolCall { index, id: id.as_str().into(), name: name.as_str().into() });
                index
            }
        };
        let (told, text) = (&mut self.told[index as usize], arguments(item));
        if let Some(delta) = text.get(told.spoken..).filter(|delta| !delta.is_empty()) {
            out.push(Chunk::Arguments { index, delta: delta.to_owned() });
            told.spoken = text.len();
        }
    }

    /// An item has ended, and these are its blocks. `response` is the id of the answer.
    pub(super) fn settle(
        &mut self,
        at: usize,
        fold: &Fold,
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
                Some(index) => self.settle_one(index, &fold.items()[at], block, out),
                None => {
                    let index = self.open(at, fold, block, out);
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
                let rest = arguments(item).get(..told.spoken).and_then(|spoken| call.arguments.strip_prefix(spoken));
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
                    let index = self.push(NO_ITEM, block.clone(), out);
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

    /// A new block of an item, which ends the text or reasoning before it. Items before it have their places, if all they
    /// can be is one block.
    fn open(&mut self, at: usize, fold: &Fold, block: Block, out: &mut Vec<Chunk>) -> u32 {
        for (earlier, item) in fold.items().iter().enumerate().take(at) {
            if let Some(json) = item.opaque()
                && self.index(earlier, None).is_none()
            {
                let block = Block::Other(Raw::new(self.origin.clone(), json.to_owned()));
                let index = self.push(earlier, block.clone(), out);
                out.push(Chunk::Block { index, block });
            }
        }
        self.push(at, block, out)
    }

    fn push(&mut self, item: usize, block: Block, out: &mut Vec<Chunk>) -> u32 {
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

/// What a call was called with so far.
fn arguments(item: &Item) -> &str {
    item.text(if item.head.kind == "custom_tool_call" { Field::Input } else { Field::Arguments }, 0)
}
