//! Accumulates streamed content blocks and emits chunks.

use std::{
    collections::HashMap,
    hash::Hash,
    mem::{discriminant, replace, take},
};

use agent_core::{Block, Chunk};

/// Blocks of a streamed answer, in the order in which they began.
///
/// Tracks each block's index, its content so far, whether it has ended, and which chunks were
/// emitted for it: so the emitted chunks add up to the resulting message. A wire identifies a block
/// by a key of its choice, and maps its provider's events to deltas, blocks and ends.
///
/// Texts, reasoning and arguments are stored here only: [`said`](Self::said) returns them.
///
/// ```
/// use agent_core::{Block, Chunk};
/// use agent_llm::Blocks;
///
/// let (mut blocks, mut chunks) = (Blocks::new(true), Vec::new());
/// blocks.text("greeting", "Hel", &mut chunks);
/// blocks.text("greeting", "lo", &mut chunks);
/// assert_eq!(blocks.said("greeting"), "Hello");
/// let made = blocks.finish(vec![Block::text("Hello"), Block::tool_call("c1", "look", "{}")], &mut chunks);
/// assert_eq!(made.len(), 2);
/// assert_eq!(chunks[2], Chunk::End { index: 0 });
/// assert_eq!(chunks[3], Chunk::ToolCall { index: 1, id: "c1".into(), name: "look".into() });
/// ```
#[derive(Debug)]
pub struct Blocks<K> {
    /// True if chunks have a listener.
    is_heard: bool,
    slots: Vec<Slot<K>>,
    /// Indices of the blocks by key: a server may send a great many.
    numbers: HashMap<K, usize>,
    /// Indices of texts and reasoning that have not ended.
    spoken: Vec<usize>,
}

#[derive(Debug)]
struct Slot<K> {
    /// `None` for a block that was added at the end of the answer.
    key: Option<K>,
    block: Block,
    /// True if the emitted chunks do not cover the whole block.
    is_news: bool,
    has_ended: bool,
}

impl<K: Copy + Eq + Hash> Blocks<K> {
    /// Creates an accumulator without blocks. If `is_heard` is false, no chunks are emitted.
    pub fn new(is_heard: bool) -> Self {
        Self { is_heard, slots: Vec::new(), numbers: HashMap::new(), spoken: Vec::new() }
    }

    /// Returns true if the block has begun.
    pub fn has(&self, key: K) -> bool {
        self.at(key).is_some()
    }

    /// Returns the keys of the blocks, in order.
    pub fn keys(&self) -> impl Iterator<Item = K> {
        self.slots.iter().filter_map(|slot| slot.key)
    }

    /// Returns the blocks so far, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Block> {
        self.slots.iter().map(|slot| &slot.block)
    }

    /// Returns the text, the reasoning or the arguments of a block so far; empty if it has not
    /// begun.
    pub fn said(&self, key: K) -> &str {
        self.at(key).and_then(|at| words(&self.slots[at].block)).map_or("", String::as_str)
    }

    /// Appends to a text. An empty delta does not begin a block.
    pub fn text(&mut self, key: K, delta: &str, out: &mut Vec<Chunk>) {
        if !delta.is_empty() {
            self.more(key, Block::text(""), delta, out);
        }
    }

    /// Appends to the model's reasoning. Even an empty delta begins a block, because reasoning may
    /// be unreadable.
    pub fn reasoning(&mut self, key: K, delta: &str, out: &mut Vec<Chunk>) {
        if !delta.is_empty() || !self.has(key) {
            self.more(key, Block::reasoning(""), delta, out);
        }
    }

    /// Begins a call, unless it has begun.
    pub fn call(&mut self, key: K, id: &str, name: &str, out: &mut Vec<Chunk>) {
        if !self.has(key) {
            self.begin(Some(key), Block::tool_call(id, name, ""), out);
        }
    }

    /// Appends to the arguments of a call that has begun.
    pub fn arguments(&mut self, key: K, delta: &str, out: &mut Vec<Chunk>) {
        if let Some(at) = self.at(key).filter(|at| matches!(self.slots[*at].block, Block::ToolCall(_))) {
            self.say(at, delta, out);
        }
    }

    /// Ends all open texts and reasoning except the block `key`, for wires that do not signal their
    /// end.
    pub fn turn_to(&mut self, key: K, out: &mut Vec<Chunk>) {
        let own = self.at(key);
        while let Some(at) = self.spoken.iter().copied().find(|at| Some(*at) != own) {
            self.end(at, out);
        }
    }

    /// Ends a block with the final form `block`. If its kind differs from the deltas, the
    /// [end](Self::finish) of the answer corrects it.
    pub fn settle(&mut self, key: K, block: Block, out: &mut Vec<Chunk>) {
        match self.at(key) {
            Some(at) if discriminant(&self.slots[at].block) != discriminant(&block) => {}
            Some(at) => self.settle_at(at, block, out),
            None => self.put(Some(key), block, out),
        }
    }

    /// Ends the answer, with the final form `blocks`: emits all chunks that are missing, and ends
    /// each block.
    ///
    /// If that is impossible, since a block was removed or moved, listeners receive the answer
    /// again from the start.
    pub fn finish(mut self, blocks: Vec<Block>, out: &mut Vec<Chunk>) -> Vec<Block> {
        if !self.is_heard {
            return blocks;
        }
        let is_kind = |(slot, block): (&Slot<K>, &Block)| discriminant(&slot.block) == discriminant(block);
        if self.slots.len() > blocks.len() || !self.slots.iter().zip(&blocks).all(is_kind) {
            self.slots.clear();
            self.spoken.clear();
            out.push(Chunk::Restart);
        }
        for (at, block) in blocks.into_iter().enumerate() {
            if at < self.slots.len() {
                self.settle_at(at, block, out);
            } else {
                self.put(None, block, out);
            }
        }
        self.into_blocks()
    }

    /// Returns the current blocks.
    pub fn into_blocks(self) -> Vec<Block> {
        self.slots.into_iter().map(|slot| slot.block).collect()
    }

    fn at(&self, key: K) -> Option<usize> {
        self.numbers.get(&key).copied()
    }

    fn tell(&self, out: &mut Vec<Chunk>, chunk: impl FnOnce() -> Chunk) {
        if self.is_heard {
            out.push(chunk());
        }
    }

    fn begin(&mut self, key: Option<K>, block: Block, out: &mut Vec<Chunk>) -> usize {
        let (index, is_heard) = (number(self.slots.len()), self.is_heard);
        // A block without deltas is emitted when it is settled.
        let is_news = words(&block).is_none();
        if let (Block::ToolCall(call), true) = (&block, is_heard) {
            out.push(Chunk::ToolCall { index, id: call.id.clone(), name: call.name.clone() });
        }
        let at = self.slots.len();
        if matches!(block, Block::Text(_) | Block::Reasoning(_)) {
            self.spoken.push(at);
        }
        self.numbers.extend(key.map(|key| (key, at)));
        self.slots.push(Slot { key, block, is_news, has_ended: false });
        at
    }

    /// Appends to a block, which begins as `fresh`. Deltas for a block of another kind are ignored.
    fn more(&mut self, key: K, fresh: Block, delta: &str, out: &mut Vec<Chunk>) {
        match self.at(key) {
            None => {
                let at = self.begin(Some(key), fresh, out);
                self.say(at, delta, out);
            }
            Some(at) if discriminant(&self.slots[at].block) == discriminant(&fresh) => self.say(at, delta, out),
            Some(_) => {}
        }
    }

    /// Deltas after a block's end are emitted at the end of the answer, because transformers have
    /// released the block.
    fn say(&mut self, at: usize, delta: &str, out: &mut Vec<Chunk>) {
        let slot = &mut self.slots[at];
        let Some(words) = words_mut(&mut slot.block) else { return };
        words.push_str(delta);
        if slot.has_ended {
            slot.is_news |= !delta.is_empty();
        } else if self.is_heard {
            let (index, delta) = (number(at), delta.to_owned());
            match slot.block {
                Block::Text(_) => out.push(Chunk::Text { index, delta }),
                Block::Reasoning(_) => out.push(Chunk::Reasoning { index, delta }),
                _ if delta.is_empty() => {}
                _ => out.push(Chunk::Arguments { index, delta }),
            }
        }
    }

    fn settle_at(&mut self, at: usize, block: Block, out: &mut Vec<Chunk>) {
        let slot = &self.slots[at];
        if !slot.has_ended
            && let (Some(said), Some(all)) = (words(&slot.block), words(&block))
            && let Some(rest) = all.strip_prefix(said.as_str()).filter(|rest| !rest.is_empty())
        {
            self.say(at, rest, out);
        }
        let slot = &mut self.slots[at];
        if take(&mut slot.is_news) || slot.block != block {
            slot.block = block;
            let block = &self.slots[at].block;
            self.tell(out, || Chunk::Block { index: number(at), block: block.clone() });
        }
        self.end(at, out);
    }

    fn end(&mut self, at: usize, out: &mut Vec<Chunk>) {
        if !replace(&mut self.slots[at].has_ended, true) {
            self.spoken.retain(|spoken| *spoken != at);
            self.tell(out, || Chunk::End { index: number(at) });
        }
    }

    /// Adds a complete block.
    fn put(&mut self, key: Option<K>, block: Block, out: &mut Vec<Chunk>) {
        let begun = match &block {
            Block::Text(_) => Block::text(""),
            Block::Reasoning(_) => Block::reasoning(""),
            Block::ToolCall(call) => Block::tool_call(call.id.clone(), call.name.clone(), ""),
            whole => whole.clone(),
        };
        let has_begun = matches!(begun, Block::ToolCall(_));
        let at = self.begin(key, begun, out);
        // An empty block is emitted as well.
        self.slots[at].is_news |= !has_begun && self.slots[at].block == block;
        self.settle_at(at, block, out);
    }
}

fn number(at: usize) -> u32 {
    u32::try_from(at).expect("no answer has billions of blocks")
}

/// Returns the part of a block that is streamed as deltas.
fn words(block: &Block) -> Option<&String> {
    match block {
        Block::Text(text) => Some(&text.text),
        Block::Reasoning(reasoning) => Some(&reasoning.text),
        Block::ToolCall(call) => Some(&call.arguments),
        _ => None,
    }
}

fn words_mut(block: &mut Block) -> Option<&mut String> {
    match block {
        Block::Text(text) => Some(&mut text.text),
        Block::Reasoning(reasoning) => Some(&mut reasoning.text),
        Block::ToolCall(call) => Some(&mut call.arguments),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
