//! What one provider's protocol of vectors is, apart from how its bytes travel: [`EmbedCodec`].

use agent_core::{
    Result,
    embed::{EmbedPurpose, EmbedResponse},
};
use bytes::Bytes;
use http::{HeaderMap, Request};

/// One provider's protocol of vectors, as pure functions: no I/O, no clock, no credentials.
///
/// [`EmbedderBuilder`](crate::EmbedderBuilder::new) makes an [`Embedder`](agent_core::embed::Embedder) of it: that splits the
/// texts of a request, makes the calls, tries again, and checks that an answer has as many vectors as there were texts.
pub trait EmbedCodec: Send + Sync + 'static {
    /// Who provides it.
    fn provider(&self) -> &str;

    /// The model's name, as its provider knows it.
    fn model(&self) -> &str;

    /// What one call may hold.
    fn limits(&self) -> EmbedLimits;

    /// Writes the request, with its whole URI and without credentials.
    ///
    /// # Errors
    /// If the request cannot be said in this protocol.
    fn encode(&self, call: &EmbedCall<'_>) -> Result<Request<Bytes>>;

    /// Reads the answer to `call`: its vectors in the order of the texts, and what it used.
    ///
    /// # Errors
    /// [`Protocol`](agent_core::ErrorKind::Protocol) for what is not an answer; the provider's error if it is one.
    fn decode(&self, call: &EmbedCall<'_>, headers: &HeaderMap, body: &[u8]) -> Result<EmbedResponse>;
}

/// One call: as many texts as it may hold.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct EmbedCall<'a> {
    /// The texts.
    pub texts: &'a [String],
    /// What the vectors are for.
    pub purpose: EmbedPurpose,
    /// How long they are to be; the model's own length if unset.
    pub dimensions: Option<usize>,
    /// Whether the provider is to cut texts that are too long for the model. It refuses them otherwise.
    pub truncate: bool,
}

impl<'a> EmbedCall<'a> {
    /// A call for vectors that are kept.
    pub fn new(texts: &'a [String]) -> Self {
        Self { texts, purpose: EmbedPurpose::default(), dimensions: None, truncate: false }
    }
}

/// What one call may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EmbedLimits {
    /// The most texts.
    pub texts: usize,
    /// The most tokens of all texts together, if there is such a limit.
    pub tokens: Option<u64>,
}

impl EmbedLimits {
    /// So many texts, of any length.
    pub fn texts(most: usize) -> Self {
        Self { texts: most, tokens: None }
    }
}
