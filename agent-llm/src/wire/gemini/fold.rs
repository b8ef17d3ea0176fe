//! From the parts of a message to its blocks, as they come.

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

/// A message under way.
///
/// Texts that follow each other are one block, and so are thoughts, however they were cut into parts: a cut means nothing.
/// Where one of the parts says more than its text (a signature), the block keeps them: its raw JSON is that part or, where
/// there are several, the list of them. In it, parts with nothing but text are joined. A signature that stands alone, which
/// follows what it signs, is a block of reasoning of its own.
#[derive(Debug)]
pub(super) struct Fold {
    origin: Origin,
    blocks: Blocks<usize>,
    /// The blocks that have ended, which is the number of the one under way.
    ended: usize,
    /// The text or the thoughts under way.
    run: Option<Run>,
    /// The call under way, if it comes in pieces.
    partial: Option<Partial>,
    calls: usize,
}

#[derive(Debug, Default)]
struct Run {
    is_thought: bool,
    /// The bytes of the text that `parts` holds.
    told: usize,
    /// The JSON of the parts so far; none while no part says more than its text.
    parts: Vec<Box<RawValue>>,
    signature: Option<String>,
}

impl Fold {
    pub(super) fn new(origin: Origin, is_heard: bool) -> Self {
        Self { origin, blocks: Blocks::new(is_heard), ended: 0, run: None, partial: None, calls: 0 }
    }

    /// Adds a part. `response` is the id of the response, and part of the ids of calls that have none.
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

    /// A piece of a call. The first has its name; the last says that nothing follows.
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

    /// A signature that stands alone.
    fn sign(&mut self, said: &PartSaid<'_>, part: &RawValue, out: &mut Vec<Chunk>) {
        let Some(signature) = said.signed() else { return };
        self.cut(out);
        let raw = Some(raw(part, &self.origin));
        let proof = Reasoning { signature: Some(signature.to_owned()), raw, ..Reasoning::default() };
        self.end(Block::Reasoning(proof), out);
    }

    /// Ends the text, the thoughts or the call under way.
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

    /// Ends the block under way, or adds one that came whole.
    fn end(&mut self, block: Block, out: &mut Vec<Chunk>) {
        self.blocks.settle(self.ended, block, out);
        self.ended += 1;
    }

    /// The blocks of the whole message, of which `rest` says where its words are from.
    pub(super) fn finish(mut self, rest: &Map<String, Value>, out: &mut Vec<Chunk>) -> Vec<Block> {
        self.cut(out);
        for (at, block) in cited(self.blocks.iter(), rest) {
            self.blocks.settle(at, block, out);
        }
        self.blocks.into_blocks()
    }
}

impl Run {
    /// Makes a part of the text that no part holds yet.
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
