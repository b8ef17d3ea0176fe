//! Decoding of streamed events, shared by all wires.

use agent_core::{Chunk, Error, ModelResponse, Result, message::Origin};

use super::surrogates::mend_surrogates;
use crate::{
    Decoder, Progress,
    error::{not_the_protocol, truncated},
};

/// Decoder state of one wire's streamed answer.
pub(crate) trait Answer: Send {
    /// Description of an invalid event, for errors.
    const UNREADABLE: &'static str;

    /// Returns the origin of the answer.
    fn origin(&self) -> &Origin;

    /// Decodes an event.
    ///
    /// # Errors
    /// If the event violates the protocol; the provider's error if the event reports one.
    fn event(&mut self, json: &str, chunks: &mut Vec<Chunk>) -> Result<()>;

    /// Handles `[DONE]`, with which gateways end an answer on some wires.
    fn end(&mut self) {}

    /// Returns the progress of the answer.
    fn progress(&self) -> Progress;

    /// Builds the response of a complete answer.
    ///
    /// # Errors
    /// If the answer is invalid after all.
    fn respond(self, chunks: &mut Vec<Chunk>) -> Result<ModelResponse>;

    /// Builds the error for JSON that violates the protocol.
    fn unreadable(&self, json: &str) -> Error {
        not_the_protocol(self.origin().provider(), Self::UNREADABLE, json)
    }
}

/// Adapts an [`Answer`] to a [`Decoder`].
pub(crate) struct Events<A>(pub(crate) A);

impl<A: Answer> Decoder for Events<A> {
    fn frame(&mut self, data: &str, chunks: &mut Vec<Chunk>) -> Result<()> {
        let data = data.trim();
        if data.is_empty() || self.progress() == Progress::Ended {
            return Ok(());
        }
        if data == "[DONE]" {
            self.0.end();
            return Ok(());
        }
        self.0.event(&mend_surrogates(data), chunks)
    }

    fn progress(&self) -> Progress {
        self.0.progress()
    }

    fn finish(self: Box<Self>, chunks: &mut Vec<Chunk>) -> Result<ModelResponse> {
        match self.progress() {
            Progress::Open => Err(truncated(self.0.origin().provider())),
            _ => self.0.respond(chunks),
        }
    }
}
