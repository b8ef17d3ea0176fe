//! Accumulates blocks from the parts of a message.

use agent_core::{
    Block, Chunk, Text,
    message::{Origin, Raw, Reasoning},
};
use serde_json::{
    Map, Value,
    value::{RawValue, to_raw_value},
};

use super::{
    citations::cited,
    partial::Partial,
    parts::PartJson,
    read::{CallSaid, PartSaid},
};
use crate::wire::{blocks::Blocks, ids::call_id, json::raw, lenient::text};

/// A message in progress.
///
/// Consecutive texts are one block, and so is consecutive reasoning, however they were split into
/// parts. If one of the parts contains more than text (a signature), the block keeps the JSON: that
/// part or, if there are several, the list of them, in which parts of mere text are joined. A
/// standalone signature, which follows the content that it signs, becomes a separate reasoning
/// block.
#[derive(Debug)]
pub(super) struct Fold {
    origin: Origin,
    blocks: Blocks<usize>,
    /// Number of ended blocks, which is the index of the open one.
    ended: usize,
    /// Open text or reasoning.
    run: Option<Run>,
    /// Open call, if it is streamed.
    partial: Option<Partial>,
    calls: usize,
}

#[derive(Debug, Default)]
struct Run {
    is_thought: bool,
    /// Length of the text covered by `parts`, in bytes.
    told: usize,
    /// JSON of the parts so far; empty while no part contains more than text.
    parts: Vec<Box<RawValue>>,
    signature: Option<String>,
}

impl Fold {
    pub(super) fn new(origin: Origin, is_heard: bool) -> Self {
        Self { origin, blocks: Blocks::new(is_heard), ended: 0, run: None, partial: None, calls: 0 }
    }

    /// Adds a part. `response` is the id of the response, for generated call ids.
    pub(super) fn push(&mut self, part: &RawValue, response: &str, out: &mut Vec<Chunk>) {
        let said = PartSaid::read(part);
        match &said {
            Some(said) if said.is_text() => self.say(said, part, out),
            Some(said @ PartSaid { call: Some(call), .. })
                if call.is_piece() || self.partial.is_some() && call.name.is_none() =>
            {
                self.call(said, call, response, out);
            }
            _ => {
                self.cut(out);
                let name = || call_id(response, self.calls);
                let block = match said {
                    Some(said) => said.block(part, &self.origin, name),
                    None => Block::Other(raw(part, &self.origin)),
                };
                self.calls += usize::from(matches!(block, Block::ToolCall(_)));
                self.end(block, out);
            }
        }
    }

    fn say(&mut self, said: &PartSaid<'_>, part: &RawValue, out: &mut Vec<Chunk>) {
        let is_thought = said.is_thought();
        let text = text(&said.text);
        if self.partial.is_some() {
            self.cut(out);
        }
        if text.is_empty() && !is_thought {
            return self.sign(said, part, out);
        }
        if text.is_empty() && said.signed().is_none() {
            return;
        }
        if self.run.as_ref().is_some_and(|run| run.is_thought != is_thought) {
            self.cut(out);
        }
        let run = self.run.get_or_insert_with(|| Run { is_thought, ..Run::default() });
        if said.says_more_than_text() {
            run.tell(self.blocks.said(self.ended));
            run.parts.push(part.to_owned());
            run.told += text.len();
            run.signature = said.signed().map(str::to_owned).or(run.signature.take());
        }
        match is_thought {
            true => self.blocks.reasoning(self.ended, text, out),
            false => self.blocks.text(self.ended, text, out),
        }
    }

    /// Adds a piece of a call. The first has its name; the last signals the end.
    fn call(&mut self, said: &PartSaid<'_>, call: &CallSaid<'_>, response: &str, out: &mut Vec<Chunk>) {
        if self.partial.is_none() || call.name.is_some() {
            self.cut(out);
            let partial = Partial::new(call, || call_id(response, self.calls));
            self.calls += 1;
            self.blocks.call(self.ended, &partial.id, call.name(), out);
            self.partial = Some(partial);
        }
        if let Some(partial) = &mut self.partial {
            partial.take(said, call);
        }
        if call.continues != Some(true) {
            self.cut(out);
        }
    }

    /// Adds a standalone signature.
    fn sign(&mut self, said: &PartSaid<'_>, part: &RawValue, out: &mut Vec<Chunk>) {
        let Some(signature) = said.signed() else { return };
        self.cut(out);
        let raw = Some(raw(part, &self.origin));
        let proof = Reasoning { signature: Some(signature.to_owned()), raw, ..Reasoning::default() };
        self.end(Block::Reasoning(proof), out);
    }

    /// Ends the open text, reasoning or call.
    pub(super) fn cut(&mut self, out: &mut Vec<Chunk>) {
        if let Some(call) = self.partial.take() {
            let block = call.finish(&self.origin);
            self.end(block, out);
        }
        let Some(run) = self.run.take() else { return };
        let text = self.blocks.said(self.ended).to_owned();
        let block = run.finish(text, &self.origin);
        self.end(block, out);
    }

    /// Ends the open block, or adds a complete one.
    fn end(&mut self, block: Block, out: &mut Vec<Chunk>) {
        self.blocks.settle(self.ended, block, out);
        self.ended += 1;
    }

    /// Returns the blocks of the whole message, with citations from `rest`.
    pub(super) fn finish(mut self, rest: &Map<String, Value>, out: &mut Vec<Chunk>) -> Vec<Block> {
        self.cut(out);
        for (at, block) in cited(self.blocks.iter(), rest) {
            self.blocks.settle(at, block, out);
        }
        self.blocks.into_blocks()
    }
}

impl Run {
    /// Makes a part of the text that no part covers yet.
    fn tell(&mut self, text: &str) {
        let untold = &text[self.told..];
        if !untold.is_empty() {
            let part = PartJson::text(untold, self.is_thought);
            self.parts.push(to_raw_value(&part).expect("texts are JSON"));
            self.told = text.len();
        }
    }

    fn finish(mut self, text: String, origin: &Origin) -> Block {
        if !self.parts.is_empty() {
            self.tell(&text);
        }
        let json = match self.parts.len() {
            0 | 1 => self.parts.pop(),
            _ => to_raw_value(&self.parts).ok(),
        };
        let raw = json.map(|json| Raw::new(origin.clone(), json));
        match self.is_thought {
            true => Block::Reasoning(Reasoning { text, signature: self.signature, encrypted: None, raw }),
            false => Block::Text(Text::new(text).with_raw(raw)),
        }
    }
}
