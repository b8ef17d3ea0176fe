//! Reading what clients ask: [`RequestReader`], for servers that speak a provider's protocol.

use std::sync::Arc;

use agent_core::{History, ModelParams, ModelRequest, Result, RunCx, SystemMessage, ToolSpecs};

use crate::Codec;

/// A [`Codec`] that reads requests, too: for a server that speaks its protocol, and for checks of recorded traffic. An
/// application, which asks, has no use for it; so it is behind the feature `requests`.
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
    /// Reads a request that was written in this protocol, by this codec or by anybody: a recorded one, or one that a
    /// client sends to a server of yours. What is not understood is kept in the raw JSON of the messages and tools, or in
    /// [`ModelParams::extra`], so that encoding it again loses nothing.
    ///
    /// # Errors
    /// [`InvalidRequest`](agent_core::ErrorKind::InvalidRequest) for what is not a request of this protocol.
    fn decode_request(&self, body: &[u8]) -> Result<ParsedRequest>;
}

impl<C: RequestReader + ?Sized> RequestReader for Arc<C> {
    fn decode_request(&self, body: &[u8]) -> Result<ParsedRequest> {
        (**self).decode_request(body)
    }
}

/// A request as it was read by [`RequestReader::decode_request`].
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ParsedRequest {
    /// The model that is asked; empty if the body does not name it.
    pub model: String,
    /// The system prompt, where the protocol has it apart from the conversation.
    pub system: Option<SystemMessage>,
    /// The conversation. One that no provider would take was repaired.
    pub messages: History,
    /// The tools on offer.
    pub tools: ToolSpecs,
    /// How to answer.
    pub params: ModelParams,
    /// Whether the answer is to be streamed.
    pub stream: bool,
}

impl ParsedRequest {
    /// The same request as a call of the run `cx`.
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
