//! Hybrid search of texts by words and by meaning. Store authors implement [`VectorStore`];
//! retrieval, memories and applications use it. The vectors come from an
//! [`Embedder`](crate::embed::Embedder).
//!
//! ```
//! use agent_retrieval::{embed::EmbedderInfo, memory::Filter, retrieval::{Record, Vector, VectorQuery}};
//!
//! let embedder = EmbedderInfo::new("acme", "embed-1");
//! let record = Record::new("guide.md/1", "A tool is called.").with("topic", "tools").vector(Vector::new(&embedder, vec![0.6, 0.8]));
//! let query = VectorQuery::text("tool").vector(Vector::new(&embedder, vec![0.8, 0.6])).filter(Filter::eq("topic", "tools"));
//! assert!(query.admits(&record.metadata));
//! ```

mod query;
mod record;
mod store;

pub use self::{
    query::{Found, VectorQuery},
    record::{Record, Vector, VectorSpace},
    store::VectorStore,
};
