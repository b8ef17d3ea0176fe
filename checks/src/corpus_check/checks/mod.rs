//! The four checks.
//!
//! * **decode**: a body with a success status becomes a response, an error a typed error, and
//!   nothing panics. Every text and number of the assistant's turn is in the response; text,
//!   reasoning and calls in its blocks equal those of an independent parser; the tokens add up to
//!   the provider's own total.
//! * **fold**: a stream yields the same response as the equivalent whole body, where that body is
//!   assembled without the codec. `MessageBuilder` builds the same blocks from the chunks, and each
//!   block ends once.
//! * **replay**: the turn, unedited and followed by results of its calls, is sent back to its
//!   provider unchanged: every key and item, numbers by value, texts byte for byte. Marked as
//!   edited but unchanged, it still has the same content.
//! * **request**: a recorded request that is decoded and encoded again *keeps* every field: the
//!   same fields with equal values, list items in the same order, nothing added. Only at the top
//!   level, a field that is `null` and `"stream": false` may be omitted, which is equivalent.

mod decode;
mod fold;
mod replay;
mod request;

use std::panic::{AssertUnwindSafe, catch_unwind};

use agent::{ModelResponse, Result, core::Chunk, llm::RequestReader};

pub(crate) use self::{
    decode::{complaints_about, to_json},
    replay::encoded as sent_again,
};
use crate::recordings::{Exchange, Recording, Wire};

/// Checks in execution and report order.
pub(crate) const CHECKS: [Check; 4] = [Check::Decode, Check::Fold, Check::Replay, Check::Request];

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Check {
    Decode,
    Fold,
    Replay,
    Request,
}

impl Check {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Decode => "decode",
            Self::Fold => "fold",
            Self::Replay => "replay",
            Self::Request => "request",
        }
    }
}

/// Outcome of one check of one exchange.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Passed,
    /// Faults, one line each.
    Failed(Vec<String>),
    /// The recording does not allow the check.
    NotCheckable(&'static str),
    /// The check does not apply to this exchange.
    NotMeant,
}

impl Outcome {
    /// Passes if there are no complaints.
    pub(crate) fn of(complaints: Vec<String>) -> Self {
        if complaints.is_empty() { Self::Passed } else { Self::Failed(complaints) }
    }

    fn failed(why: impl Into<String>) -> Self {
        Self::Failed(vec![why.into()])
    }
}

/// Exchange to be checked.
pub(crate) struct Subject<'a> {
    pub(crate) wire: &'a dyn Wire,
    pub(crate) exchange: &'a Exchange,
    pub(crate) recording: Recording,
    pub(crate) codec: Box<dyn RequestReader>,
}

impl<'a> Subject<'a> {
    /// # Errors
    /// If there is no codec for the exchange.
    pub(crate) fn new(wire: &'a dyn Wire, exchange: &'a Exchange) -> Result<Self> {
        Ok(Self { wire, exchange, recording: exchange.recording(wire), codec: wire.codec(exchange)? })
    }

    /// Decodes the response, whole or streamed.
    pub(crate) fn response(&self) -> Result<ModelResponse> {
        if self.exchange.stream {
            self.streamed(true).map(|(response, _)| response)
        } else {
            self.codec.decode(self.exchange.response.body.as_bytes())
        }
    }

    /// Decodes the stream, with its chunks if requested.
    fn streamed(&self, chunks: bool) -> Result<(ModelResponse, Vec<Chunk>)> {
        let (mut decoder, mut heard) = (self.codec.decoder(chunks), Vec::new());
        let mut splitter = self.codec.framing().splitter();
        splitter.push(&self.exchange.body(), |event| decoder.frame(event, &mut heard))?;
        splitter.finish(|event| decoder.frame(event, &mut heard))?;
        Ok((decoder.finish(&mut heard)?, heard))
    }

    /// Runs one check; a panic is a failure.
    pub(crate) fn check(&self, check: Check) -> Outcome {
        if let Some(why) = self.wire.foreign(self.exchange) {
            return Outcome::NotCheckable(why);
        }
        let run = || match check {
            Check::Decode => decode::check(self),
            Check::Fold => fold::check(self),
            Check::Replay => replay::check(self),
            Check::Request => request::check(self),
        };
        catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
            let said = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
            Outcome::failed(format!("panicked: {}", said.unwrap_or("without a message")))
        })
    }
}
