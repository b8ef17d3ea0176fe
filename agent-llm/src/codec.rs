//! One provider's protocol, independent of the transport: [`Codec`] and [`Decoder`].

use std::{fmt, sync::Arc};

use agent_core::{Chunk, Error, ModelRequest, ModelResponse, Result, ToolSpec, message::Origin, model::ToolFinding};
use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use serde_json::{Map, Value};

use crate::{
    Framing, ProviderError,
    error::{refused_tool::without_tool, room::with_room},
};

/// One provider's protocol (a *wire*), as pure functions: no I/O, no clock, no credentials.
///
/// [`ModelBuilder`](crate::ModelBuilder::new) combines a codec and a
/// [`Transport`](crate::Transport) into a [`Model`](agent_core::Model). Unknown content is never an
/// error; it is kept in the message's raw JSON.
pub trait Codec: Send + Sync + 'static {
    /// Returns the origin recorded in the messages that this codec decodes.
    fn origin(&self) -> &Origin;

    /// Encodes the request, with its complete URI and without credentials.
    ///
    /// # Errors
    /// If this protocol cannot express the request.
    fn encode(&self, req: &ModelRequest) -> Result<http::Request<Bytes>>;

    /// Decodes a complete (not streamed) answer.
    ///
    /// # Errors
    /// [`Protocol`](agent_core::ErrorKind::Protocol) if the body is not an answer; the provider's
    /// error if the body reports one.
    fn decode(&self, body: &[u8]) -> Result<ModelResponse>;

    /// Decodes an error response. `body` may be truncated. Default: as
    /// [`ProviderError::from_response`].
    fn decode_error(&self, status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Error {
        ProviderError::from_response(status, headers, body).into_error(self.origin().provider())
    }

    /// Returns a repaired request to send instead of `req`, which the provider rejected with
    /// `refused` and to which the codec cannot [adapt](Self::adapt). The repair is tried once.
    /// Default: the request with a lower output limit, if the provider's message shows that the
    /// prompt fits, but not together with the answer; the request without the tool whose schema
    /// the provider rejects by name; else `None`, which returns the error to the caller.
    ///
    /// For repairs that need knowledge of the protocol, such as dropping provider-specific content
    /// that the provider no longer accepts.
    fn amend(&self, req: &ModelRequest, refused: &Error) -> Option<ModelRequest> {
        with_room(req, refused).or_else(|| without_tool(req, refused))
    }

    /// Lists the rules of the provider that these tools violate, without a request.
    /// [`encode`](Self::encode) applies the same rules. Default: none.
    fn check_tools(&self, tools: &[ToolSpec]) -> Vec<ToolFinding> {
        let _ = tools;
        Vec::new()
    }

    /// Adapts the codec to a rule of the provider that its refusal of a request points to. The
    /// request is sent again with the adapted codec, and a [lasting](Adapted::is_lasting) one
    /// encodes all later requests of the model. Default: `None`, no adaptation.
    fn adapt(&self, refused: &Error) -> Option<Adapted> {
        let _ = refused;
        None
    }

    /// Returns the request fields that carry the session name `session` to the provider. They are
    /// sent by models built with [`tell_session`](crate::ModelBuilder::tell_session). Default:
    /// none.
    fn session_fields(&self, session: &str) -> Map<String, Value> {
        let _ = session;
        Map::new()
    }

    /// Returns the framing of events in a streamed answer. Default: server-sent events.
    fn framing(&self) -> Framing {
        Framing::default()
    }

    /// Starts decoding a streamed answer. With `chunks` set to false chunks are not read, and the
    /// decoder may skip building them.
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

    fn check_tools(&self, tools: &[ToolSpec]) -> Vec<ToolFinding> {
        (**self).check_tools(tools)
    }

    fn adapt(&self, refused: &Error) -> Option<Adapted> {
        (**self).adapt(refused)
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

/// A codec that follows one more rule of its provider: see [`Codec::adapt`].
#[non_exhaustive]
pub struct Adapted {
    /// Codec whose requests follow the rule.
    pub codec: Arc<dyn Codec>,
    /// Description of the rule, for warnings: "call ids of at most 40 characters".
    pub rule: String,
    /// True if the rule holds for all requests to the model, false if it concerns the content of
    /// the refused request alone.
    pub is_lasting: bool,
}

impl Adapted {
    /// Creates an adaptation.
    pub fn new(codec: impl Codec, rule: impl Into<String>, is_lasting: bool) -> Self {
        Self { codec: Arc::new(codec), rule: rule.into(), is_lasting }
    }
}

impl fmt::Debug for Adapted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Adapted")
            .field("rule", &self.rule)
            .field("is_lasting", &self.is_lasting)
            .finish_non_exhaustive()
    }
}

/// Progress of a streamed answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Incomplete: a stream that ends in this state was truncated.
    Open,
    /// The answer is complete; details such as its usage may follow.
    Complete,
    /// The stream is over; nothing follows.
    Ended,
}

/// Incremental decoder of one streamed answer.
pub trait Decoder: Send {
    /// Decodes the data of one event (as delimited by [`Codec::framing`]) and appends the resulting
    /// chunks to `chunks`.
    ///
    /// # Errors
    /// [`Protocol`](agent_core::ErrorKind::Protocol) if the data does not follow this protocol; the
    /// provider's error if the event reports one.
    fn frame(&mut self, data: &str, chunks: &mut Vec<Chunk>) -> Result<()>;

    /// Returns the progress of the answer.
    fn progress(&self) -> Progress;

    /// Completes the answer, and appends the remaining chunks to `chunks`.
    ///
    /// # Errors
    /// [`Truncated`](agent_core::ErrorKind::Truncated) if the answer is not complete.
    fn finish(self: Box<Self>, chunks: &mut Vec<Chunk>) -> Result<ModelResponse>;
}
