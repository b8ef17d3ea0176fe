//! Putting the blocks of a message together from their events.

use agent_core::{Block, Chunk, message::Origin};

use super::{
    block_fold::{BlockFold, Delta, Kind},
    read::{self, says_nothing},
};
use crate::wire::blocks::Blocks;

/// The blocks of a message under way.
///
/// Blocks are in the order in which they first say something: in a stream that is in order, the order of their starts. A
/// delta without a block begins one; what of a call comes before its name is spoken once that is known.
#[derive(Debug)]
pub(super) struct Fold {
    origin: Origin,
    /// The id of the response, for calls that have none of their own.
    pub(super) response: String,
    /// What the drafts say, by their places.
    blocks: Blocks<usize>,
    drafts: Vec<BlockFold>,
    /// The places of the drafts that have not ended.
    open: Vec<usize>,
}

impl Fold {
    pub(super) fn new(origin: Origin, is_heard: bool) -> Self {
        let (drafts, open) = (Vec::new(), Vec::new());
        Self { origin, response: String::new(), blocks: Blocks::new(is_heard), drafts, open }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.drafts.is_empty()
    }

    /// A block that came whole.
    pub(super) fn put(&mut self, json: &str, chunks: &mut Vec<Chunk>) {
        let block = read::block(json, &self.origin);
        if !says_nothing(&block) {
            self.drafts.push(BlockFold::whole(json));
            self.blocks.settle(self.drafts.len() - 1, block, chunks);
        }
    }

    /// A block begins. A call that begins again under the same id, or under none, is the one that is under way.
    pub(super) fn start(&mut self, index: Option<u64>, json: &str, chunks: &mut Vec<Chunk>) -> serde_json::Result<()> {
        let index = self.index(index);
        let (start, said) = BlockFold::started(index, json)?;
        let at = match self.open_at(index) {
            Some(at) if self.drafts[at].goes_on_with(&start, self.blocks.has(at)) => {
                self.drafts[at].adopt(start);
                at
            }
            Some(at) if self.drafts[at].is_repeated_by(&start) => return Ok(()),
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
            Some(at) if self.drafts[at].takes(kind) => at,
            known => {
                if let Some(at) = known {
                    self.end(at, chunks);
                }
                self.open(BlockFold::unstarted(index, kind.unwrap_or(Kind::Other)))
            }
        };
        let said = match self.drafts[at].kind {
            Kind::Text => &delta.text,
            Kind::Thinking => &delta.thinking,
            _ => &None,
        };
        if let Some(said) = said {
            self.say(at, &said.0, chunks);
        }
        self.drafts[at].push(delta)?;
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
        let json: Vec<_> = self.blocks.keys().map(|at| std::mem::take(&mut self.drafts[at].json)).collect();
        json.into_iter().zip(self.blocks.into_blocks()).collect()
    }

    fn index(&self, index: Option<u64>) -> u64 {
        index.or_else(|| self.open.last().map(|at| self.drafts[*at].index)).unwrap_or(0)
    }

    fn open(&mut self, draft: BlockFold) -> usize {
        self.drafts.push(draft);
        self.open.push(self.drafts.len() - 1);
        self.drafts.len() - 1
    }

    fn open_at(&self, index: u64) -> Option<usize> {
        self.open.iter().rev().copied().find(|at| self.drafts[*at].index == index)
    }

    fn say(&mut self, at: usize, delta: &str, chunks: &mut Vec<Chunk>) {
        match self.drafts[at].kind {
            Kind::Thinking if delta.is_empty() => {} // it may never say anything
            Kind::Thinking => self.blocks.reasoning(at, delta, chunks),
            _ => self.blocks.text(at, delta, chunks),
        }
    }

    /// Speaks what is new of a call, once it is known which it is.
    fn call(&mut self, at: usize, chunks: &mut Vec<Chunk>) {
        let draft = &mut self.drafts[at];
        let Some((id, name)) = draft.call() else { return };
        self.blocks.call(at, id, name, chunks);
        self.blocks.arguments(at, &draft.input, chunks);
        draft.input.clear();
    }

    fn end(&mut self, at: usize, chunks: &mut Vec<Chunk>) {
        self.open.retain(|open| *open != at);
        self.drafts[at].end(&self.response, at, self.blocks.said(at).is_empty());
        self.call(at, chunks);
        let (draft, said) = (&mut self.drafts[at], self.blocks.said(at));
        draft.json = draft.written(said);
        let block = draft.read(said, &self.origin);
        if !says_nothing(&block) {
            self.blocks.settle(at, block, chunks);
        }
    }
}
