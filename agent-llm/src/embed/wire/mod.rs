//! The wires of vectors: one file each.

mod bedrock;
mod cohere;
mod gemini;
mod ollama;
mod openai;
mod vertex;

use agent_core::Result;
use bytes::Bytes;
use http::{Request, Uri};
use serde::Serialize;
use serde_json::{Map, Value};

use super::{EmbedCodec, EmbedProfile, EmbedWire};
use crate::wire::{endpoint::post, json::write_with};

/// The codec of `model`, as `provider` is asked for it.
///
/// # Errors
/// [`Config`](agent_core::ErrorKind::Config) if the profile's base URL is none, or the wire knows no such model.
pub fn codec(
    provider: impl Into<String>,
    model: impl Into<String>,
    profile: EmbedProfile,
) -> Result<Box<dyn EmbedCodec>> {
    let (provider, model) = (provider.into(), model.into());
    Ok(match profile.wire {
        EmbedWire::Openai => Box::new(openai::OpenAi::new(provider, model, profile)?),
        EmbedWire::Gemini => Box::new(gemini::Gemini::new(provider, &model, profile)?),
        EmbedWire::Vertex => Box::new(vertex::Vertex::new(provider, model, profile)?),
        EmbedWire::Bedrock => Box::new(bedrock::Bedrock::new(provider, model, profile)?),
        EmbedWire::Cohere => Box::new(cohere::Cohere::new(provider, model, profile)?),
        EmbedWire::Ollama => Box::new(ollama::Ollama::new(provider, model, profile)?),
    })
}

/// A request of this JSON, with `extra` laid over it.
fn request(uri: &Uri, body: &impl Serialize, extra: &Map<String, Value>) -> Request<Bytes> {
    let mut out = Vec::new();
    write_with(body, extra, &mut out);
    post(uri.clone(), out.into())
}
