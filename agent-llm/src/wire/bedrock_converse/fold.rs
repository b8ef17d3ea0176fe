//! Putting the blocks of a message together from their events.

use agent_core::{Block, Chunk, message::Origin};
use serde_json::{Map, Value};

use super::{
    draft::{Delta, Draft, Kind},
    read::{self, says_nothing},
};
use crate::wire::blocks::Blocks;

/// The blocks of a message under way, in the order in which they first say something.
///
/// A block of text or thoughts has no start: its first delta begins it. What of a call comes before its name is spoken once
/// that is known.
#[derive(Debug)]
pub(super) struct Fold {
    origin: Origin,
    /// What the drafts say, by their places.
    blocks: Blocks<usize>,
    drafts: Vec<Draft>,
    /// The places of the drafts that have not ended.
    open: Vec<usize>,
}

impl Fold {
    pub(super) fn new(origin: Origin, is_heard: bool) -> Self {
        Self { origin, blocks: Blocks::new(is_heard), drafts: Vec::new(), open: Vec::new() }
    }

    /// A block that came whole.
    pub(super) fn put(&mut self, json: &str, chunks: &mut Vec<Chunk>) {
        let block = read::block(json, &self.origin);
        if !says_nothing(&block) {
            self.drafts.push(Draft::whole(json));
            self.blocks.settle(self.drafts.len() - 1, block, chunks);
        }
    }

    /// A block begins with these fields of its kind.
    pub(super) fn start(
        &mut self,
        index: Option<u64>,
        kind: &str,
        fields: Map<String, Value>,
        chunks: &mut Vec<Chunk>,
    ) {
        let index = self.index(index);
        let start = Draft::new(index, Kind::of(kind), fields);
        let at = match self.open_at(index) {
            Some(at) if self.drafts[at].is_begun_by(&start) => {
                self.drafts[at].adopt(start);
                at
            }
            known => self.open_after(known, start, chunks),
        };
        self.call(at, chunks);
    }

    /// More of a block.
    pub(super) fn delta(
        &mut self,
        index: Option<u64>,
        delta: &Delta<'_>,
        chunks: &mut Vec<Chunk>,
    ) -> serde_json::Result<()> {
        let Some(kind) = delta.of() else { return Ok(()) };
        let index = self.index(index);
        let at = match self.open_at(index) {
            Some(at) if self.drafts[at].kind == kind => at,
            known => self.open_after(known, Draft::new(index, kind, Map::new()), chunks),
        };
        match self.drafts[at].kind {
            Kind::Text => self.blocks.text(at, delta.words(), chunks),
            Kind::Reasoning if !delta.words().is_empty() => self.blocks.reasoning(at, delta.words(), chunks),
            _ => {}
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

    fn open_at(&self, index: u64) -> Option<usize> {
        self.open.iter().rev().copied().find(|at| self.drafts[*at].index == index)
    }

    /// Opens a draft in the place of the one of its number that is open.
    fn open_after(&mut self, known: Option<usize>, draft: Draft, chunks: &mut Vec<Chunk>) -> usize {
        if let Some(at) = known {
            self.end(at, chunks);
        }
        self.drafts.push(draft);
        self.open.push(self.drafts.len() - 1);
        self.drafts.len() - 1
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
        let (draft, said) = (&mut self.drafts[at], self.blocks.said(at));
        draft.end(said);
        let block = draft.read(said, &self.origin);
        if !says_nothing(&block) {
            self.blocks.settle(at, block, chunks);
        }
    }
}
