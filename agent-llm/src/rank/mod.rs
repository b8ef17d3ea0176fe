//! Rerankers of providers, by name: [`reranker`](crate::reranker).
//!
//! | for | see |
//! |---|---|
//! | a reranker of a provider | [`reranker`](crate::reranker), [`RerankerBuilder`](crate::RerankerBuilder) |
//! | a provider's dialect | [`RankProfile`], [`RankWire`] |
//! | a custom wire | [`Reranker`](agent_retrieval::rank::Reranker) itself: it is one call |

mod http;
mod profile;
mod wire;

pub(crate) use self::http::HttpReranker;
pub use self::profile::{RankProfile, RankWire};
