//! What one provider's protocol is, apart from how its bytes travel: [`Codec`] and [`Decoder`].

use agent_core::{Chunk, Error, ModelRequest, ModelResponse, Origin, Result};
use bytes::Bytes;
use http::{HeaderMap, StatusCode};

/// One provider's protocol (a *wire*), as pure functions: no I/O, no clock, no credentials.
///
/// [`HttpModel`](crate::HttpModel) makes a [`Model`](agent_core::Model) of a codec and a
/// [`Transport`](crate::Transport). What is not understood is kept in the message's raw JSON; it is never an error.
pub trait Codec: Send + Sync + 'static {
    /// Where the messages come from that this codec decodes.
    fn origin(&self) -> &Origin;

    /// Writes the request, with its whole URI and without credentials.
    ///
    /// # Errors
    /// If the request cannot be said in this protocol.
    fn encode(&self, req: &ModelRequest) -> Result<http::Request<Bytes>>;

    /// Reads an answer that came whole.
    ///
    /// # Errors
    /// [`Protocol`](agent_core::ErrorKind::Protocol) for what is not an answer; the provider's error if it is one.
    fn decode(&self, body: &[u8]) -> Result<ModelResponse>;

    /// Reads the answer to a request that was refused. `body` may have been cut.
    fn decode_error(&self, status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Error;

    /// Begins to read a streamed answer. Without `chunks` nobody looks at them, so that none need be made.
    fn decoder(&self, chunks: bool) -> Box<dyn Decoder>;
}

/// How far a streamed answer has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// More must follow: a stream that ends here was cut.
    Open,
    /// The answer is complete; details such as its usage may follow.
    Complete,
    /// Nothing follows.
    Ended,
}

/// Reads one streamed answer.
pub trait Decoder: Send {
    /// Takes the data of one event, and adds what it says to `chunks`.
    ///
    /// # Errors
    /// [`Protocol`](agent_core::ErrorKind::Protocol) for what is not of this protocol; the provider's error if the event
    /// is one.
    fn frame(&mut self, data: &str, chunks: &mut Vec<Chunk>) -> Result<()>;

    /// How far the answer has come.
    fn progress(&self) -> Progress;

    /// Ends the answer, and adds what is still to be said to `chunks`.
    ///
    /// # Errors
    /// [`Truncated`](agent_core::ErrorKind::Truncated) if the answer is not complete.
    fn finish(self: Box<Self>, chunks: &mut Vec<Chunk>) -> Result<ModelResponse>;
}
