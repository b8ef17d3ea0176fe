//! Putting the blocks of a message together from their events.

use std::mem::take;

use agent_core::{Block, Chunk, message::Origin};

use crate::wire::{blocks::Blocks, content::Input};

/// A block under way, in the words of one wire.
pub(crate) trait Draft: Default {
    /// More of a block.
    type Delta<'a>;

    /// A block of which this came first; none if it says nothing.
    fn unstarted(delta: &Self::Delta<'_>) -> Option<Self>;

    /// True if this may be more of the block.
    fn takes(&self, delta: &Self::Delta<'_>) -> bool;

    /// True if the block, of which something may have been said, came before its start, which is this.
    fn goes_on_with(&self, start: &Self, has_said: bool) -> bool;

    /// True if this start says nothing that is not known.
    fn is_repeated_by(&self, _start: &Self) -> bool {
        false
    }

    /// Takes over what the start of the block says.
    fn adopt(&mut self, start: Self);

    /// Whose words the block says.
    fn voice(&self) -> Voice;

    /// The words that come with a delta of the block.
    fn words<'d>(&self, delta: &'d Self::Delta<'_>) -> &'d str;

    /// Takes what else comes with it; what of a call's arguments does is added to `input`.
    ///
    /// # Errors
    /// If it is no JSON that a value can hold.
    fn push(&mut self, delta: &Self::Delta<'_>, input: &mut String) -> serde_json::Result<()>;

    /// The id and the name, if it is a call of which both are known.
    fn call(&self) -> Option<(&str, &str)>;

    /// No more of the block comes, which is that at `at` of this response. If it `lacks_arguments`, `input` may have to be some.
    fn end(&mut self, _response: &str, _at: usize, _lacks_arguments: bool, _input: &mut String) {}

    /// The block as it would have come whole, which has said this. `input` has not been spoken.
    fn json(&mut self, said: &str, input: &str) -> String;

    /// The block of this JSON.
    fn read(json: &str, origin: &Origin) -> Block;

    /// True for a block that is none.
    fn says_nothing(block: &Block) -> bool;
}

/// What the words of a block are.
pub(crate) enum Voice {
    Text,
    Thoughts,
    /// It has none.
    Silent,
}

/// The blocks of a message under way.
///
/// Blocks are in the order in which they first say something: in a stream that is in order, the order of their starts. A
/// delta without a block begins one; what of a call comes before its name is spoken once that is known.
#[derive(Debug)]
pub(crate) struct Fold<D> {
    origin: Origin,
    /// The id of the response, for calls that have none of their own.
    pub(crate) response: String,
    /// What the drafts say, by their places.
    blocks: Blocks<usize>,
    slots: Vec<Slot<D>>,
    /// The places of the drafts that have not ended.
    open: Vec<usize>,
}

#[derive(Debug)]
struct Slot<D> {
    /// The provider's number for the block, which another block may have later.
    index: u64,
    draft: D,
    /// What of a call's arguments has not been spoken.
    input: String,
    /// The block as it would have come whole, once it has ended.
    json: String,
}

impl<D: Draft> Fold<D> {
    pub(crate) fn new(origin: Origin, is_heard: bool) -> Self {
        let (slots, open) = (Vec::new(), Vec::new());
        Self { origin, response: String::new(), blocks: Blocks::new(is_heard), slots, open }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// A block that came whole.
    pub(crate) fn put(&mut self, json: &str, chunks: &mut Vec<Chunk>) {
        let block = D::read(json, &self.origin);
        if !D::says_nothing(&block) {
            self.slots.push(Slot { json: json.to_owned(), ..Slot::new(0, D::default()) });
            self.blocks.settle(self.slots.len() - 1, block, chunks);
        }
    }

    /// A block begins, with these words if it is a text or thoughts.
    pub(crate) fn start(&mut self, index: Option<u64>, start: D, said: &str, chunks: &mut Vec<Chunk>) {
        let index = self.index(index);
        let at = match self.open_at(index) {
            Some(at) if self.slots[at].draft.goes_on_with(&start, self.blocks.has(at)) => {
                self.slots[at].draft.adopt(start);
                at
            }
            Some(at) if self.slots[at].draft.is_repeated_by(&start) => return,
            known => self.open_after(known, index, start, chunks),
        };
        self.say(at, said, chunks);
        self.call(at, chunks);
    }

    /// More of a block.
    ///
    /// # Errors
    /// If it is no JSON that a value can hold.
    pub(crate) fn delta(
        &mut self,
        index: Option<u64>,
        delta: &D::Delta<'_>,
        chunks: &mut Vec<Chunk>,
    ) -> serde_json::Result<()> {
        let index = self.index(index);
        let at = match self.open_at(index) {
            Some(at) if self.slots[at].draft.takes(delta) => at,
            known => match D::unstarted(delta) {
                Some(draft) => self.open_after(known, index, draft, chunks),
                None => return Ok(()),
            },
        };
        let words = self.slots[at].draft.words(delta);
        self.say(at, words, chunks);
        let Slot { draft, input, .. } = &mut self.slots[at];
        draft.push(delta, input)?;
        self.call(at, chunks);
        Ok(())
    }

    /// A block ends.
    pub(crate) fn stop(&mut self, index: Option<u64>, chunks: &mut Vec<Chunk>) {
        if let Some(at) = self.open_at(self.index(index)) {
            self.end(at, chunks);
        }
    }

    /// Ends every block, and gives them in order, each with the JSON in which it would have come whole.
    pub(crate) fn finish(mut self, chunks: &mut Vec<Chunk>) -> (Vec<String>, Vec<Block>) {
        while let Some(at) = self.open.first().copied() {
            self.end(at, chunks);
        }
        let json = self.blocks.keys().map(|at| take(&mut self.slots[at].json)).collect();
        (json, self.blocks.into_blocks())
    }

    fn index(&self, index: Option<u64>) -> u64 {
        index.or_else(|| self.open.last().map(|at| self.slots[*at].index)).unwrap_or(0)
    }

    fn open_at(&self, index: u64) -> Option<usize> {
        self.open.iter().rev().copied().find(|at| self.slots[*at].index == index)
    }

    /// Opens a draft in the place of the one of its number that is open.
    fn open_after(&mut self, known: Option<usize>, index: u64, draft: D, chunks: &mut Vec<Chunk>) -> usize {
        if let Some(at) = known {
            self.end(at, chunks);
        }
        self.slots.push(Slot::new(index, draft));
        self.open.push(self.slots.len() - 1);
        self.slots.len() - 1
    }

    fn say(&mut self, at: usize, words: &str, chunks: &mut Vec<Chunk>) {
        match self.slots[at].draft.voice() {
            Voice::Text => self.blocks.text(at, words, chunks),
            // They may never say anything.
            Voice::Thoughts if !words.is_empty() => self.blocks.reasoning(at, words, chunks),
            Voice::Thoughts | Voice::Silent => {}
        }
    }

    /// Speaks what is new of a call, once it is known which it is.
    fn call(&mut self, at: usize, chunks: &mut Vec<Chunk>) {
        let Slot { draft, input, .. } = &mut self.slots[at];
        let Some((id, name)) = draft.call() else { return };
        self.blocks.call(at, id, name, chunks);
        self.blocks.arguments(at, input, chunks);
        input.clear();
    }

    fn end(&mut self, at: usize, chunks: &mut Vec<Chunk>) {
        self.open.retain(|open| *open != at);
        let Slot { draft, input, .. } = &mut self.slots[at];
        draft.end(&self.response, at, self.blocks.said(at).is_empty(), input);
        self.call(at, chunks);
        let (Slot { draft, input, json, .. }, said) = (&mut self.slots[at], self.blocks.said(at));
        *json = draft.json(said, input);
        let mut block = D::read(json, &self.origin);
        if let (Block::ToolCall(call), Input::Invalid { text }) = (&mut block, Input::new(said)) {
            text.clone_into(&mut call.arguments); // what the model wrote, not what the API takes for it
        }
        if !D::says_nothing(&block) {
            self.blocks.settle(at, block, chunks);
        }
    }
}

impl<D> Slot<D> {
    fn new(index: u64, draft: D) -> Self {
        Self { index, draft, input: String::new(), json: String::new() }
    }
}
