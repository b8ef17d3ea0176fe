//! Conversion of a stream with calls as text into a stream with tool calls.

use std::{collections::HashMap, sync::Arc};

use agent_core::{Block, Chunk, ToolSpecs, model::MessageBuilder};

use super::read::{Piece, Reader};

/// Converts a model's chunks into chunks and blocks with tool calls.
#[derive(Debug)]
pub(super) struct Speaker {
    reader: Reader,
    tools: ToolSpecs,
    /// Index of the model's text block that is being read.
    reading: Option<u32>,
    /// Output index of each of the model's blocks; for a text, of its beginning.
    places: HashMap<u32, u32>,
    /// Number of output blocks so far.
    blocks: u32,
    /// Index of the open text block.
    text: Option<u32>,
    /// Index of the open call.
    call: Option<u32>,
    /// Number in the next call's id.
    number: usize,
    called: bool,
    message: MessageBuilder,
    ready: Vec<Chunk>,
}

impl Speaker {
    /// Creates a converter; `calls` is the number of earlier calls.
    pub(super) fn new(tools: ToolSpecs, calls: usize) -> Self {
        Self {
            reader: Reader::new(tools.clone()),
            tools,
            reading: None,
            places: HashMap::new(),
            blocks: 0,
            text: None,
            call: None,
            number: calls + 1,
            called: false,
            message: MessageBuilder::default(),
            ready: Vec::new(),
        }
    }

    /// Consumes a chunk of the model.
    pub(super) fn take(&mut self, chunk: &Chunk) {
        match chunk {
            Chunk::Text { index, delta } => self.read(*index, delta),
            Chunk::Block { index, block: Block::Text(text) } if !self.is_known(*index) => self.read(*index, &text.text),
            Chunk::Block { index, block: block @ Block::Text(_) } => self.final_text(*index, block),
            // A call without an end tag ends with the message.
            Chunk::End { index } if self.reading == Some(*index) => {
                if !self.reader.is_in_call() {
                    self.end_text(false);
                }
            }
            Chunk::Restart => {
                let fresh = Self::new(self.tools.clone(), self.number - 1);
                let ready = std::mem::replace(self, fresh).ready;
                self.ready = ready;
                self.say(Chunk::Restart);
            }
            other => {
                let chunk = self.elsewhere(other.clone());
                self.say(chunk);
            }
        }
    }

    /// Ends the message; `cut` is true if it was truncated. Returns its blocks if they contain
    /// calls.
    pub(super) fn finish(&mut self, cut: bool) -> Option<Vec<Block>> {
        self.end_text(cut);
        let message = std::mem::take(&mut self.message);
        self.called.then(|| message.into_blocks())
    }

    /// Returns the chunks to emit now.
    pub(super) fn ready(&mut self) -> Vec<Chunk> {
        std::mem::take(&mut self.ready)
    }

    fn read(&mut self, index: u32, text: &str) {
        if self.reading.is_some_and(|reading| reading != index) {
            self.end_text(false);
        }
        self.reading = Some(index);
        let mut pieces = Vec::new();
        self.reader.push(text, &mut pieces);
        pieces.into_iter().for_each(|piece| self.piece(piece));
    }

    fn is_known(&self, index: u32) -> bool {
        self.reading == Some(index) || self.places.contains_key(&index)
    }

    /// Handles the final form of a streamed text, unless it contained calls.
    fn final_text(&mut self, index: u32, block: &Block) {
        if self.called {
            return;
        }
        if self.reading == Some(index) {
            self.reader = Reader::new(self.tools.clone()); // its pieces are all in the block
        }
        if let Some(index) = self.places.get(&index).copied() {
            self.say(Chunk::Block { index, block: block.clone() });
        }
    }

    fn end_text(&mut self, cut: bool) {
        let mut pieces = Vec::new();
        self.reader.end(cut, &mut pieces);
        pieces.into_iter().for_each(|piece| self.piece(piece));
        self.reading = None;
        self.close_text();
    }

    fn piece(&mut self, piece: Piece) {
        match piece {
            Piece::Text(delta) => {
                let index = *self.text.get_or_insert_with(|| next(&mut self.blocks));
                if let Some(reading) = self.reading {
                    self.places.entry(reading).or_insert(index);
                }
                self.say(Chunk::Text { index, delta });
            }
            Piece::Begins(name) => {
                self.close_text();
                let index = *self.call.insert(next(&mut self.blocks));
                let id = Arc::from(format!("call_{}", self.number));
                self.number += 1;
                self.called = true;
                self.say(Chunk::ToolCall { index, id, name });
            }
            Piece::Called(delta) => {
                if let Some(index) = self.call.take() {
                    self.say(Chunk::Arguments { index, delta });
                    self.say(Chunk::End { index });
                }
            }
        }
    }

    fn close_text(&mut self) {
        if let Some(index) = self.text.take() {
            self.say(Chunk::End { index });
        }
    }

    /// Returns the chunk of another block with its output index.
    fn elsewhere(&mut self, mut chunk: Chunk) -> Chunk {
        let (Chunk::Reasoning { index, .. }
        | Chunk::ToolCall { index, .. }
        | Chunk::Arguments { index, .. }
        | Chunk::Block { index, .. }
        | Chunk::End { index }) = &mut chunk
        else {
            return chunk;
        };
        *index = *self.places.entry(*index).or_insert_with(|| next(&mut self.blocks));
        chunk
    }

    fn say(&mut self, chunk: Chunk) {
        self.message.push(&chunk);
        self.ready.push(chunk);
    }
}

fn next(blocks: &mut u32) -> u32 {
    *blocks += 1;
    *blocks - 1
}
