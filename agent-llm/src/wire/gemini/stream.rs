//! Answers that are streamed.

use agent_core::{Chunk, ModelResponse, Result};

use super::{answer::Answer, fold::Heard, manner::Manner};
use crate::{Decoder, Progress, error::truncated, wire::surrogates::mend_surrogates};

/// Reads one streamed answer: responses, of which each holds the next piece. The last says why it ended.
#[derive(Debug)]
pub(super) struct StreamDecoder {
    answer: Answer,
    provider: String,
    /// Somebody listens.
    heard: bool,
    /// A proxy said that nothing follows.
    ended: bool,
}

impl StreamDecoder {
    pub(super) fn new(manner: Manner, chunks: bool) -> Self {
        let provider = manner.origin.provider().to_owned();
        Self { answer: Answer::new(manner), provider, heard: chunks, ended: false }
    }
}

impl Decoder for StreamDecoder {
    fn frame(&mut self, data: &str, chunks: &mut Vec<Chunk>) -> Result<()> {
        let data = data.trim();
        self.ended |= data == "[DONE]";
        if self.ended || data.is_empty() {
            return Ok(());
        }
        let mut heard = Heard(self.heard.then_some(chunks));
        self.answer.take(&mend_surrogates(data), &mut heard).map(drop)
    }

    fn progress(&self) -> Progress {
        match (self.ended, self.answer.is_complete()) {
            (true, _) => Progress::Ended,
            (false, true) => Progress::Complete,
            (false, false) => Progress::Open,
        }
    }

    fn finish(self: Box<Self>, chunks: &mut Vec<Chunk>) -> Result<ModelResponse> {
        if self.progress() == Progress::Open {
            return Err(truncated(&self.provider));
        }
        self.answer.finish(None, &mut Heard(self.heard.then_some(chunks)))
    }
}
