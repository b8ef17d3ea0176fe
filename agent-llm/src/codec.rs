//! What one provider's protocol is, apart from how its bytes travel: [`Codec`] and [`Decoder`].

use std::sync::Arc;

use agent_core::{Chunk, Error, ModelRequest, ModelResponse, Result, message::Origin};
use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use serde_json::{Map, Value};

use crate::{Framing, ProviderError};

/// One provider's protocol (a *wire*), as pure functions: no I/O, no clock, no credentials.
///
/// [`ModelBuilder`](crate::ModelBuilder::new) makes a [`Model`](agent_core::Model) of a codec and a
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

    /// Reads the answer to a request that was refused. `body` may have been cut. Default: as
    /// [`ProviderError::from_response`].
    fn decode_error(&self, status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Error {
        ProviderError::from_response(status, headers, body).into_error(self.origin().provider())
    }

    /// The request to send instead of `req`, which the provider refused with `refused`: once, before anybody hears of it.
    /// Default: none, so that the error is what the caller gets.
    ///
    /// For what only the protocol knows: content that was the provider's own and that it does not take back.
    fn amend(&self, req: &ModelRequest, refused: &Error) -> Option<ModelRequest> {
        let _ = (req, refused);
        None
    }

    /// The fields of a request in which the provider takes a name of the session, with `session` in them. They are sent by a
    /// model that was built to [tell its session](crate::ModelBuilder::tell_session). Default: none.
    fn session_fields(&self, session: &str) -> Map<String, Value> {
        let _ = session;
        Map::new()
    }

    /// How the events of a streamed answer lie in its bytes. Default: server-sent events.
    fn framing(&self) -> Framing {
        Framing::default()
    }

    /// Begins to read a streamed answer. Without `chunks` nobody looks at them, so that none need be made.
    fn decoder(&self, chunks: bool) -> Box<dyn Decoder>;
}

impl<C: Codec + ?Sized> Codec for Arc<C> {
    fn origin(&self) -> &Origin {
        (**self).origin()
    }

    fn encode(&self, req: &ModelRequest) -> Result<http::Request<Bytes>> {
        (**self).encode(req)
    }

    fn decode(&self, body: &[u8]) -> Result<ModelResponse> {
        (**self).decode(body)
    }

    fn decode_error(&self, status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Error {
        (**self).decode_error(status, headers, body)
    }

    fn amend(&self, req: &ModelRequest, refused: &Error) -> Option<ModelRequest> {
        (**self).amend(req, refused)
    }

    fn session_fields(&self, session: &str) -> Map<String, Value> {
        (**self).session_fields(session)
    }

    fn framing(&self) -> Framing {
        (**self).framing()
    }

    fn decoder(&self, chunks: bool) -> Box<dyn Decoder> {
        (**self).decoder(chunks)
    }
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
    /// Takes the data of one event (what an event is, [`Codec::framing`] says), and adds what it says to `chunks`.
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
