//! Putting the blocks of a message together from their events, and telling those who listen.

use agent_core::{Block, Chunk, message::Origin};

use super::{
    block_fold::{BlockFold, Delta, Kind},
    read::says_nothing,
};

/// The blocks of a message under way.
///
/// Blocks are in the order in which they first say something: in a stream that is in order, the order of their starts. A
/// delta without a block begins one; what of a call comes before its name is spoken once that is known.
#[derive(Debug)]
pub(super) struct Fold {
    origin: Origin,
    is_heard: bool,
    /// The id of the response, for calls that have none of their own.
    pub(super) response: String,
    blocks: Vec<BlockFold>,
    /// The places of the blocks that have not ended.
    open: Vec<usize>,
    /// How many blocks have said something.
    numbered: u32,
}

impl Fold {
    pub(super) fn new(origin: Origin, is_heard: bool) -> Self {
        let (blocks, open) = (Vec::new(), Vec::new());
        Self { origin, is_heard, response: String::new(), blocks, open, numbered: 0 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// A block begins. A call that begins again under the same id, or under none, is the one that is under way.
    pub(super) fn start(&mut self, index: Option<u64>, json: &str, chunks: &mut Vec<Chunk>) -> serde_json::Result<()> {
        let index = self.index(index);
        let mut start = BlockFold::started(index, json)?;
        let said = std::mem::take(&mut start.said);
        let at = match self.open_at(index) {
            Some(at) if self.blocks[at].goes_on_with(&start) => {
                self.blocks[at].adopt(start);
                at
            }
            Some(at) if self.blocks[at].is_repeated_by(&start) => return Ok(()),
            known => {
                if let Some(at) = known {
                    self.end(at, chunks);
                }
                self.open(start)
            }
        };
        self.say(at, &said, chunks);
        self.call(at, chunks);
        Ok(())
    }

    /// More of a block.
    pub(super) fn delta(
        &mut self,
        index: Option<u64>,
        delta: &Delta<'_>,
        chunks: &mut Vec<Chunk>,
    ) -> serde_json::Result<()> {
        let index = self.index(index);
        let kind = delta.of();
        let at = match self.open_at(index) {
            Some(at) if self.blocks[at].takes(kind) => at,
            known => {
                if let Some(at) = known {
                    self.end(at, chunks);
                }
                self.open(BlockFold::unstarted(index, kind.unwrap_or(Kind::Other)))
            }
        };
        let said = match self.blocks[at].kind {
            Kind::Text => &delta.text,
            Kind::Thinking => &delta.thinking,
            _ => &None,
        };
        if let Some(said) = said {
            self.say(at, &said.0, chunks);
        }
        self.blocks[at].push(delta)?;
        self.call(at, chunks);
        Ok(())
    }

    /// A block ends.
    pub(super) fn stop(&mut self, index: Option<u64>, chunks: &mut Vec<Chunk>) {
        if let Some(at) = self.open_at(self.index(index)) {
            self.end(at, chunks);
        }
    }

    /// Ends every block, and gives them in order, each with the JSON in which it would have come whole.
    pub(super) fn finish(mut self, chunks: &mut Vec<Chunk>) -> Vec<(String, Block)> {
        while let Some(at) = self.open.first().copied() {
            self.end(at, chunks);
        }
        self.blocks.sort_by_key(|block| block.number);
        self.blocks.into_iter().filter_map(|block| block.number.and(block.done)).collect()
    }

    fn index(&self, index: Option<u64>) -> u64 {
        index.or_else(|| self.open.last().map(|at| self.blocks[*at].index)).unwrap_or(0)
    }

    fn open(&mut self, block: BlockFold) -> usize {
        self.blocks.push(block);
        self.open.push(self.blocks.len() - 1);
        self.blocks.len() - 1
    }

    fn open_at(&self, index: u64) -> Option<usize> {
        self.open.iter().rev().copied().find(|at| self.blocks[*at].index == index)
    }

    fn number(&mut self, at: usize) -> u32 {
        *self.blocks[at].number.get_or_insert_with(|| {
            self.numbered += 1;
            self.numbered - 1
        })
    }

    fn say(&mut self, at: usize, delta: &str, chunks: &mut Vec<Chunk>) {
        if delta.is_empty() {
            return;
        }
        let index = self.number(at);
        let block = &mut self.blocks[at];
        block.said.push_str(delta);
        if self.is_heard {
            let delta = delta.to_owned();
            chunks.push(match block.kind {
                Kind::Thinking => Chunk::Reasoning { index, delta },
                _ => Chunk::Text { index, delta },
            });
        }
    }

    /// Speaks what is new of a call, once it is known which it is.
    fn call(&mut self, at: usize, chunks: &mut Vec<Chunk>) {
        let Some((id, name)) = self.blocks[at].call() else { return };
        let begins = self.blocks[at].number.is_none().then(|| (id.into(), name.into()));
        let index = self.number(at);
        if !self.is_heard {
            return;
        }
        if let Some((id, name)) = begins {
            chunks.push(Chunk::ToolCall { index, id, name });
        }
        let delta = self.blocks[at].unspoken();
        if !delta.is_empty() {
            chunks.push(Chunk::Arguments { index, delta: delta.to_owned() });
        }
        self.blocks[at].speak();
    }

    fn end(&mut self, at: usize, chunks: &mut Vec<Chunk>) {
        self.open.retain(|open| *open != at);
        let json = self.blocks[at].end(&self.response, at);
        self.call(at, chunks);
        let block = self.blocks[at].read(&json, &self.origin);
        if !says_nothing(&block) {
            let index = self.number(at);
            if self.is_heard {
                if self.blocks[at].says_more(&block) {
                    chunks.push(Chunk::Block { index, block: block.clone() });
                }
                chunks.push(Chunk::End { index });
            }
        }
        self.blocks[at].done = Some((json, block));
    }
}
