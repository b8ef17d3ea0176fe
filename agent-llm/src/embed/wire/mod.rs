//! Embedding wires, one file each. A wire is a [`Form`]; combined with a [`Server`] it is a codec.

mod bedrock;
mod cohere;
mod gemini;
mod ollama;
mod openai;
mod vertex;

use agent_core::Result;
use agent_retrieval::embed::EmbedResponse;
use bytes::Bytes;
use http::{HeaderMap, Request, Uri};
use serde::{Serialize, de::DeserializeOwned};

use super::{
    EmbedCall, EmbedCodec, EmbedLimits, EmbedProfile, EmbedWire,
    vectors::{Numbers, read},
};
use crate::wire::{endpoint::post, json::write_with};

/// Format of one wire's requests and answers.
trait Form: Send + Sync + 'static {
    /// Returns the URI for a model, from a provider's base URL.
    ///
    /// # Errors
    /// [`Config`](agent_core::ErrorKind::Config) if the URL is invalid.
    fn uri(&self, base: &str, model: &str) -> Result<Uri>;

    /// Returns the limits of one call.
    fn limits(&self, server: &Server) -> EmbedLimits;

    /// Encodes the request.
    ///
    /// # Errors
    /// If this format cannot express the call.
    fn encode(&self, server: &Server, call: &EmbedCall<'_>) -> Result<Request<Bytes>>;

    /// Decodes the answer.
    ///
    /// # Errors
    /// The provider's error, if the body reports one; [`Protocol`](agent_core::ErrorKind::Protocol)
    /// if it is neither.
    fn decode(&self, server: &Server, headers: &HeaderMap, body: &[u8]) -> Result<EmbedResponse>;
}

/// Server and model to call.
struct Server {
    uri: Uri,
    provider: String,
    model: String,
    profile: EmbedProfile,
}

impl Server {
    /// Builds a request from this JSON, overlaid with the profile's extra fields.
    fn request(&self, body: &impl Serialize) -> Request<Bytes> {
        let mut out = Vec::new();
        write_with(body, &self.profile.extra, &mut out);
        post(self.uri.clone(), out.into())
    }

    fn read<T: DeserializeOwned>(&self, body: &[u8]) -> Result<T> {
        read(&self.provider, body, "the answer holds no vectors")
    }
}

/// A wire format bound to a server.
struct Served<F>(Server, F);

impl<F: Form> EmbedCodec for Served<F> {
    fn provider(&self) -> &str {
        &self.0.provider
    }

    fn model(&self) -> &str {
        &self.0.model
    }

    fn limits(&self) -> EmbedLimits {
        self.1.limits(&self.0)
    }

    fn encode(&self, call: &EmbedCall<'_>) -> Result<Request<Bytes>> {
        self.1.encode(&self.0, call)
    }

    fn decode(&self, _: &EmbedCall<'_>, headers: &HeaderMap, body: &[u8]) -> Result<EmbedResponse> {
        self.1.decode(&self.0, headers, body)
    }
}

fn numbers(vectors: impl IntoIterator<Item = Numbers>) -> Vec<Vec<f32>> {
    vectors.into_iter().map(|numbers| numbers.0).collect()
}

/// Returns the codec for `model` at `provider`.
///
/// # Errors
/// [`Config`](agent_core::ErrorKind::Config) if the profile's base URL is invalid, or the wire does
/// not know the model.
pub fn codec(
    provider: impl Into<String>,
    model: impl Into<String>,
    profile: EmbedProfile,
) -> Result<Box<dyn EmbedCodec>> {
    let (provider, model) = (provider.into(), model.into());
    match profile.wire {
        EmbedWire::Openai => served(openai::OpenAi, provider, model, profile),
        EmbedWire::Gemini => {
            let own = model.strip_prefix("models/").map(str::to_owned);
            served(gemini::Gemini, provider, own.unwrap_or(model), profile)
        }
        EmbedWire::Vertex => served(vertex::Vertex, provider, model, profile),
        EmbedWire::Bedrock => served(bedrock::Maker::of(&model)?, provider, model, profile),
        EmbedWire::Cohere => served(cohere::Cohere, provider, model, profile),
        EmbedWire::Ollama => served(ollama::Ollama, provider, model, profile),
    }
}

fn served(form: impl Form, provider: String, model: String, profile: EmbedProfile) -> Result<Box<dyn EmbedCodec>> {
    let uri = form.uri(&profile.base_url, &model)?;
    Ok(Box::new(Served(Server { uri, provider, model, profile }, form)))
}
