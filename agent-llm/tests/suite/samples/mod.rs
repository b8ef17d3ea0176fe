//! Responses of each wire's servers: one row per wire, for every test that covers all wires.
#![allow(dead_code, reason = "each test binary uses a part")]

mod anthropic;
mod anthropic_bedrock;
mod bedrock_converse;
mod cohere;
mod gemini;
mod ollama;
mod openai_chat;
mod openai_responses;

use std::sync::Arc;

use agent_core::{Block, Chunk};
use agent_llm::{
    RequestReader,
    conformance::{Answer, Samples},
};

/// All wires.
pub(crate) const ROWS: &[Row] = &[
    openai_chat::ROW,
    openai_responses::ROW,
    anthropic::ROW,
    anthropic_bedrock::ROW,
    gemini::ROW,
    bedrock_converse::ROW,
    cohere::ROW,
    ollama::ROW,
];

/// One wire.
pub(crate) struct Row {
    pub(crate) wire: &'static str,
    pub(crate) codec: fn() -> Arc<dyn RequestReader>,
    pub(crate) samples: fn() -> Samples,
}

impl Row {
    /// An answer of one text only.
    pub(crate) fn text(&self) -> Answer {
        self.answer(|blocks| matches!(blocks, [Block::Text(_)]))
    }

    /// An answer with two calls.
    pub(crate) fn calls(&self) -> Answer {
        self.answer(|blocks| blocks.iter().filter(|block| matches!(block, Block::ToolCall(_))).count() == 2)
    }

    /// The first answer that is also available as a stream and has such blocks.
    fn answer(&self, wanted: impl Fn(&[Block]) -> bool) -> Answer {
        let codec = (self.codec)();
        let is_wanted = |answer: &&Answer| {
            let read = codec.decode(answer.whole().as_bytes()).expect("the sample is good");
            !answer.events().is_empty() && wanted(read.message.blocks())
        };
        (self.samples)().answers().iter().find(is_wanted).expect("every wire has such a sample").clone()
    }

    /// Returns the index of the first event of `answer` for whose chunks `says` returns a text, and
    /// the text.
    pub(crate) fn event(&self, answer: &Answer, says: fn(Chunk) -> Option<String>) -> Option<(usize, String)> {
        let (mut decoder, mut chunks) = ((self.codec)().decoder(true), Vec::new());
        answer.events().iter().enumerate().find_map(|(at, event)| {
            decoder.frame(event, &mut chunks).expect("the sample is good");
            chunks.drain(..).filter_map(says).find(|said| !said.is_empty()).map(|said| (at, said))
        })
    }
}

/// Returns the text of a chunk.
pub(crate) fn text_of(chunk: Chunk) -> Option<String> {
    if let Chunk::Text { delta, .. } = chunk { Some(delta) } else { None }
}

/// Returns the arguments in a chunk.
pub(crate) fn arguments_of(chunk: Chunk) -> Option<String> {
    if let Chunk::Arguments { delta, .. } = chunk { Some(delta) } else { None }
}
