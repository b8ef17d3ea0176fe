//! Embeddings: texts as vectors, for semantic search. Authors of provider clients implement
//! [`Embedder`]; vector stores and retrieval call it.
//!
//! ```
//! use agent_core::{Result, Usage, async_trait};
//! use agent_retrieval::embed::{EmbedRequest, EmbedResponse, Embedder, EmbedderInfo};
//!
//! /// As good as no embedder at all, and as fast.
//! struct Lengths;
//!
//! #[async_trait]
//! impl Embedder for Lengths {
//!     fn info(&self) -> EmbedderInfo {
//!         EmbedderInfo::new("mine", "lengths").with_dimensions(1)
//!     }
//!
//!     async fn embed(&self, req: EmbedRequest) -> Result<EmbedResponse> {
//!         let vectors = req.texts.iter().map(|text| vec![text.len() as f32]).collect();
//!         Ok(EmbedResponse::new(vectors, Usage::default()))
//!     }
//! }
//!
//! # tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(async {
//! let response = Lengths.embed(EmbedRequest::documents(["one", "three"])).await?;
//! assert_eq!(response.vectors, [[3.0], [5.0]]);
//! # Ok::<(), agent_core::Error>(())
//! # }).expect("embeds");
//! ```

mod embedder;
mod request;

use agent_core::middleware::SharedService;

/// A stack of tower services around an embedder.
pub type EmbedService = SharedService<EmbedRequest, EmbedResponse>;

pub use self::{
    embedder::{Embedder, EmbedderInfo},
    request::{EmbedPurpose, EmbedRequest, EmbedResponse},
};
