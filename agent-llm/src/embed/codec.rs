//! One provider's embedding protocol, independent of the transport: [`EmbedCodec`].

use agent_core::Result;
use agent_retrieval::embed::{EmbedPurpose, EmbedResponse};
use bytes::Bytes;
use http::{HeaderMap, Request};

/// One provider's embedding protocol, as pure functions: no I/O, no clock, no credentials.
///
/// [`EmbedderBuilder`](crate::EmbedderBuilder::new) turns it into an
/// [`Embedder`](agent_retrieval::embed::Embedder), which splits the texts of a request, makes the calls,
/// retries, and checks that an answer has as many vectors as there were texts.
pub trait EmbedCodec: Send + Sync + 'static {
    /// Returns the provider's name.
    fn provider(&self) -> &str;

    /// Returns the model's name at its provider.
    fn model(&self) -> &str;

    /// Returns the limits of one call.
    fn limits(&self) -> EmbedLimits;

    /// Encodes the request, with its complete URI and without credentials.
    ///
    /// # Errors
    /// If this protocol cannot express the request.
    fn encode(&self, call: &EmbedCall<'_>) -> Result<Request<Bytes>>;

    /// Decodes the answer to `call`: its vectors in the order of the texts, and its usage.
    ///
    /// # Errors
    /// [`Protocol`](agent_core::ErrorKind::Protocol) if the body is not an answer; the provider's
    /// error if the body reports one.
    fn decode(&self, call: &EmbedCall<'_>, headers: &HeaderMap, body: &[u8]) -> Result<EmbedResponse>;
}

/// One call, within the provider's limits.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct EmbedCall<'a> {
    /// Texts.
    pub texts: &'a [String],
    /// Purpose of the vectors.
    pub purpose: EmbedPurpose,
    /// Length of the vectors; the model's default if unset.
    pub dimensions: Option<usize>,
    /// True if the provider should truncate texts that are too long for the model. Otherwise it
    /// rejects them.
    pub truncate: bool,
}

impl<'a> EmbedCall<'a> {
    /// Creates a call for vectors to be stored.
    pub fn new(texts: &'a [String]) -> Self {
        Self { texts, purpose: EmbedPurpose::default(), dimensions: None, truncate: false }
    }
}

/// Limits of one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EmbedLimits {
    /// Maximum number of texts.
    pub texts: usize,
    /// Maximum number of tokens of all texts together, if limited.
    pub tokens: Option<u64>,
}

impl EmbedLimits {
    /// Limits the number of texts only.
    pub fn texts(most: usize) -> Self {
        Self { texts: most, tokens: None }
    }
}
