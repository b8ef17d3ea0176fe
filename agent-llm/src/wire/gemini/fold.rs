//! From the parts of a message to its blocks, as they come.

use agent_core::{
    Block, Chunk, Text,
    message::{Origin, Raw, Reasoning},
};
use serde_json::value::RawValue;

use super::{
    part::{CallSaid, PartSaid, raw},
    partial::Partial,
    speak::{PartJson, write_list},
};
use crate::wire::ids::call_id;

/// Those who listen to a message under way, if anybody does.
pub(super) struct Heard<'a>(pub(super) Option<&'a mut Vec<Chunk>>);

impl Heard<'_> {
    fn say(&mut self, chunk: impl FnOnce() -> Chunk) {
        if let Some(chunks) = &mut self.0 {
            chunks.push(chunk());
        }
    }

    /// Tells the final form of a block that has ended.
    pub(super) fn retell(&mut self, index: u32, block: &Block) {
        self.say(|| Chunk::Block { index, block: block.clone() });
    }
}

/// A message under way.
///
/// Texts that follow each other are one block, and so are thoughts, however they were cut into parts: a cut means nothing.
/// Where one of the parts says more than its text (a signature), the block keeps them: its raw JSON is that part or, where
/// there are several, the list of them. In it, parts with nothing but text are joined. A signature that stands alone, which
/// follows what it signs, is a block of reasoning of its own.
#[derive(Debug)]
pub(super) struct Fold {
    origin: Origin,
    blocks: Vec<Block>,
    /// The text or the thoughts under way.
    run: Option<Run>,
    /// The call under way, if it comes in pieces.
    partial: Option<Partial>,
    calls: usize,
}

#[derive(Debug, Default)]
struct Run {
    is_thought: bool,
    text: String,
    /// The bytes of the text that `parts` holds.
    told: usize,
    /// The JSON of the parts so far; none while no part says more than its text.
    parts: Vec<Box<RawValue>>,
    signature: Option<String>,
}

impl Fold {
    pub(super) fn new(origin: Origin) -> Self {
        Self { origin, blocks: Vec::new(), run: None, partial: None, calls: 0 }
    }

    /// Adds a part. `response` is the id of the response, and part of the ids of calls that have none.
    pub(super) fn push(&mut self, part: &RawValue, response: &str, heard: &mut Heard<'_>) {
        let json = part.get();
        let said = PartSaid::read(json);
        match &said {
            Some(said) if said.is_text() => self.say(said, part, heard),
            Some(said @ PartSaid { call: Some(call), .. })
                if call.is_piece() || self.partial.is_some() && call.name.is_none() =>
            {
                self.call(said, call, response, heard);
            }
            _ => {
                self.cut(heard);
                let calls = self.calls;
                let name = || call_id(response, calls);
                let block = match said {
                    Some(said) => said.block(json, &self.origin, name),
                    None => Block::Other(raw(json, &self.origin)),
                };
                self.calls += usize::from(matches!(block, Block::ToolCall(_)));
                self.add(block, heard);
            }
        }
    }

    fn say(&mut self, said: &PartSaid<'_>, part: &RawValue, heard: &mut Heard<'_>) {
        let is_thought = said.is_thought();
        let text = said.text.as_ref().map_or("", |text| &text.0);
        if self.partial.is_some() {
            self.cut(heard);
        }
        if text.is_empty() && !is_thought {
            return self.sign(said, part, heard);
        }
        if text.is_empty() && said.signed().is_none() {
            return;
        }
        if self.run.as_ref().is_some_and(|run| run.is_thought != is_thought) {
            self.cut(heard);
        }
        let run = self.run.get_or_insert_with(|| Run { is_thought, ..Run::default() });
        if said.says_more_than_text() {
            run.tell();
            run.parts.push(part.to_owned());
            run.told += text.len();
            run.signature = said.signed().map(str::to_owned).or(run.signature.take());
        }
        run.text.push_str(text);
        let (index, delta) = (self.blocks.len() as u32, || text.to_owned());
        heard.say(|| match is_thought {
            true => Chunk::Reasoning { index, delta: delta() },
            false => Chunk::Text { index, delta: delta() },
        });
    }

    /// A piece of a call. The first has its name; the last says that nothing follows.
    fn call(&mut self, said: &PartSaid<'_>, call: &CallSaid<'_>, response: &str, heard: &mut Heard<'_>) {
        if self.partial.is_none() || call.name.is_some() {
            self.cut(heard);
            let partial = Partial::new(call, || call_id(response, self.calls));
            self.calls += 1;
            let (index, id, name) = (self.blocks.len() as u32, partial.id().into(), partial.name().into());
            heard.say(|| Chunk::ToolCall { index, id, name });
            self.partial = Some(partial);
        }
        if let Some(partial) = &mut self.partial {
            partial.take(said, call);
        }
        if call.continues != Some(true) {
            self.cut(heard);
        }
    }

    /// A signature that stands alone.
    fn sign(&mut self, said: &PartSaid<'_>, part: &RawValue, heard: &mut Heard<'_>) {
        let Some(signature) = said.signed() else { return };
        self.cut(heard);
        let raw = Some(raw(part.get(), &self.origin));
        let proof = Reasoning { signature: Some(signature.to_owned()), raw, ..Reasoning::default() };
        self.add(Block::Reasoning(proof), heard);
    }

    /// Ends the text, the thoughts or the call under way.
    pub(super) fn cut(&mut self, heard: &mut Heard<'_>) {
        if let Some(call) = self.partial.take() {
            let block = call.finish(&self.origin);
            self.end(block, heard);
        }
        let Some(mut run) = self.run.take() else { return };
        let raw = run.raw(&self.origin);
        let says_more = raw.is_some();
        let block = match run.is_thought {
            true => Block::Reasoning(Reasoning { text: run.text, signature: run.signature, encrypted: None, raw }),
            false => Block::Text(Text::new(run.text).with_raw(raw)),
        };
        if says_more {
            heard.retell(self.blocks.len() as u32, &block);
        }
        self.end(block, heard);
    }

    /// Adds a block that came whole.
    fn add(&mut self, block: Block, heard: &mut Heard<'_>) {
        let index = self.blocks.len() as u32;
        match &block {
            Block::ToolCall(call) => {
                heard.say(|| Chunk::ToolCall { index, id: call.id.clone(), name: call.name.clone() });
            }
            _ => heard.retell(index, &block),
        }
        self.end(block, heard);
    }

    /// Ends a block, of which all was told that has no end.
    fn end(&mut self, block: Block, heard: &mut Heard<'_>) {
        let index = self.blocks.len() as u32;
        if let Block::ToolCall(call) = &block {
            heard.say(|| Chunk::Arguments { index, delta: call.arguments.clone() });
            if call.raw.is_some() {
                heard.retell(index, &block);
            }
        }
        heard.say(|| Chunk::End { index });
        self.blocks.push(block);
    }

    /// The blocks of the whole message.
    pub(super) fn finish(mut self, heard: &mut Heard<'_>) -> Vec<Block> {
        self.cut(heard);
        self.blocks
    }
}

impl Run {
    /// Makes a part of the text that no part holds yet.
    fn tell(&mut self) {
        let text = &self.text[self.told..];
        if !text.is_empty() {
            let part = PartJson::text(text, self.is_thought);
            self.parts.push(serde_json::value::to_raw_value(&part).expect("texts are JSON"));
            self.told = self.text.len();
        }
    }

    fn raw(&mut self, origin: &Origin) -> Option<Raw> {
        if self.parts.is_empty() {
            return None;
        }
        self.tell();
        let mut parts = std::mem::take(&mut self.parts);
        match parts.len() {
            1 => parts.pop().map(|part| Raw::new(origin.clone(), part)),
            _ => Some(raw(&write_list(&parts), origin)),
        }
    }
}
