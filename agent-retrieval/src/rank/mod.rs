//! Reranking of documents by relevance to a query. Authors of provider clients implement
//! [`Reranker`]; retrieval calls it with the few documents that a search found.
//!
//! ```
//! use agent_core::{Result, Usage, async_trait};
//! use agent_retrieval::rank::{RankRequest, RankResponse, Ranked, Reranker, RerankerInfo};
//!
//! /// Thinks that the longest document is the best.
//! struct Lengths;
//!
//! #[async_trait]
//! impl Reranker for Lengths {
//!     fn info(&self) -> RerankerInfo {
//!         RerankerInfo::new("mine", "lengths")
//!     }
//!
//!     async fn rank(&self, req: RankRequest) -> Result<RankResponse> {
//!         let scored = req.documents.iter().enumerate().map(|(at, text)| Ranked::new(at, text.len() as f32));
//!         Ok(RankResponse::new(scored.collect(), Usage::default()).best(req.top))
//!     }
//! }
//!
//! # tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(async {
//! let response = Lengths.rank(RankRequest::new("how long?", ["one", "three", "two!"]).top(2)).await?;
//! assert_eq!(response.ranked.iter().map(|ranked| ranked.index).collect::<Vec<_>>(), [1, 2]);
//! # Ok::<(), agent_core::Error>(())
//! # }).expect("ranks");
//! ```

mod request;
mod reranker;

pub use self::{
    request::{RankRequest, RankResponse, Ranked},
    reranker::{Reranker, RerankerInfo},
};
