//! Text embeddings: embedders by name ([`embedder`](crate::embedder)), and one that needs neither
//! key nor network.
//!
//! | for | see |
//! |---|---|
//! | an embedder of a provider | [`embedder`](crate::embedder), [`EmbedderBuilder`](crate::EmbedderBuilder) |
//! | an embedder without dependencies | [`HashedEmbedder`], named `offline:hashed` |
//! | tower layers around an embedder | [`LayeredEmbedder`] |
//! | a cache of vectors | [`CachedEmbedder`] (feature `cache`) |
//! | a provider's dialect | [`EmbedProfile`], [`EmbedWire`], and [`codec()`] to send requests in another way |
//! | a custom wire | [`EmbedCodec`] |
//!
//! ```
//! use agent_retrieval::embed::{EmbedRequest, Embedder};
//! use agent_llm::{embedder, transport_fn};
//! use http::Response;
//!
//! # tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime").block_on(async {
//! let answer = r#"{"data": [{"index": 0, "embedding": [0.6, 0.8]}], "usage": {"prompt_tokens": 3}}"#;
//! let provider = transport_fn(move |_request| async move { Ok(Response::new(answer.into())) });
//! let embedder = embedder("openai:text-embedding-3-small").transport(provider).build()?;
//!
//! let response = embedder.embed(EmbedRequest::query("What is 6 x 7?")).await?;
//! assert_eq!((response.vectors, response.usage.input), (vec![vec![0.6, 0.8]], 3));
//! # Ok::<(), agent_core::Error>(())
//! # }).expect("embeds");
//! ```

#[cfg(feature = "cache")]
mod cached;
mod codec;
mod hashed;
mod http;
mod layered;
mod lengths;
mod profile;
mod split;
mod vectors;
mod wire;

#[cfg(feature = "cache")]
pub use self::cached::CachedEmbedder;
pub use self::{
    codec::{EmbedCall, EmbedCodec, EmbedLimits},
    hashed::HashedEmbedder,
    layered::LayeredEmbedder,
    profile::{EmbedProfile, EmbedWire},
    wire::codec,
};
pub(crate) use self::{
    http::{EmbedOptions, HttpEmbedder},
    vectors::{read, used},
};
