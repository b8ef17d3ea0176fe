//! Rerankers of providers, by their names: [`reranker`](crate::reranker).
//!
//! | for | see |
//! |---|---|
//! | a reranker of a provider | [`reranker`](crate::reranker), [`RerankerBuilder`](crate::RerankerBuilder) |
//! | how a provider is asked | [`RankProfile`], [`RankWire`] |
//! | a wire of one's own | [`Reranker`](agent_core::rank::Reranker) itself: it is one call |

mod http;
mod profile;
mod wire;

pub(crate) use self::http::HttpReranker;
pub use self::profile::{RankProfile, RankWire};
