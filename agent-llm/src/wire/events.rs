//! The events of answers under way: what all wires do alike.

use agent_core::{Chunk, Error, ModelResponse, Result, message::Origin};

use super::surrogates::mend_surrogates;
use crate::{
    Decoder, Progress,
    error::{not_the_protocol, truncated},
};

/// An answer under way, as a wire reads it.
pub(crate) trait Answer: Send {
    /// What an event is called that is none.
    const UNREADABLE: &'static str;

    /// Who answers.
    fn origin(&self) -> &Origin;

    /// Takes an event.
    ///
    /// # Errors
    /// For what is not of the protocol; the provider's error if the event is one.
    fn event(&mut self, json: &str, chunks: &mut Vec<Chunk>) -> Result<()>;

    /// The server said `[DONE]`: of wires in which gateways end an answer so.
    fn end(&mut self) {}

    /// How far the answer has come.
    fn progress(&self) -> Progress;

    /// The answer, which is complete.
    ///
    /// # Errors
    /// If it is none after all.
    fn respond(self, chunks: &mut Vec<Chunk>) -> Result<ModelResponse>;

    /// The error for JSON that is not of the protocol.
    fn unreadable(&self, json: &str) -> Error {
        not_the_protocol(self.origin().provider(), Self::UNREADABLE, json)
    }
}

/// Reads the events of an answer.
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
