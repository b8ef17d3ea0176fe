//! Decoding of requests: [`RequestReader`], for servers that implement a provider's protocol.

use std::sync::Arc;

use agent_core::{History, ModelParams, ModelRequest, Result, RunCx, SystemMessage, ToolSpecs};

use crate::Codec;

/// A [`Codec`] that also decodes requests, for servers that implement its protocol and for checks
/// of recorded traffic. Client applications do not need it, so it is behind the feature `requests`.
///
/// ```
/// use agent_llm::{OpenAiChatCodec, Profile, RequestReader};
///
/// let codec = OpenAiChatCodec::new("m", Profile::openai())?;
/// let asked = codec.decode_request(br#"{"model":"m","messages":[{"role":"user","content":"hello"}]}"#)?;
/// assert_eq!((asked.model.as_str(), asked.messages.len()), ("m", 1));
/// # Ok::<(), agent_core::Error>(())
/// ```
pub trait RequestReader: Codec {
    /// Decodes a request in this protocol, written by this codec or by any other client: a recorded
    /// request, or one that a client sends to your server. Unknown content is kept in the raw JSON
    /// of the messages and tools, or in [`ModelParams::extra`], so that encoding the request again
    /// loses nothing.
    ///
    /// # Errors
    /// [`InvalidRequest`](agent_core::ErrorKind::InvalidRequest) if the body is not a request of
    /// this protocol.
    fn decode_request(&self, body: &[u8]) -> Result<ParsedRequest>;
}

impl<C: RequestReader + ?Sized> RequestReader for Arc<C> {
    fn decode_request(&self, body: &[u8]) -> Result<ParsedRequest> {
        (**self).decode_request(body)
    }
}

/// Request decoded by [`RequestReader::decode_request`].
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ParsedRequest {
    /// Name of the requested model; empty if the body does not name one.
    pub model: String,
    /// System prompt, if the protocol separates it from the conversation.
    pub system: Option<SystemMessage>,
    /// Conversation. A conversation that no provider would accept is repaired first.
    pub messages: History,
    /// Tools on offer.
    pub tools: ToolSpecs,
    /// Generation parameters.
    pub params: ModelParams,
    /// True if the client asks for a streamed answer.
    pub stream: bool,
}

impl ParsedRequest {
    /// Converts this into a request of the run `cx`.
    pub fn into_request(self, cx: RunCx) -> ModelRequest {
        let mut req = ModelRequest::new(cx);
        req.system = self.system;
        req.messages = self.messages;
        req.tools = self.tools;
        req.params = self.params.into();
        req.stream = self.stream;
        req
    }
}
