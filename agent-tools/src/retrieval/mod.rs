//! Retrieval-augmented generation: documents are [split](Chunker) into chunks, stored with their
//! vectors in a [`VectorStore`](agent_retrieval::retrieval::VectorStore), and retrieved by keywords and
//! meaning. A [`Retriever`] does all of it, for applications that fill an index and for agents that
//! search it with a [tool](Retriever::tool).
//!
//! ```no_run
//! use agent_store::InMemoryVectorStore;
//! use agent_tools::retrieval::{Document, Retriever};
//! # async fn example(embedder: impl agent_retrieval::embed::Embedder) -> agent_core::Result<()> {
//! let retriever = Retriever::new(InMemoryVectorStore::default(), "handbook").embedder(embedder);
//! let text = std::fs::read_to_string("docs/start.md").expect("a file");
//! retriever.index(vec![Document::new("docs/start.md", text)]).await?;
//! for passage in retriever.search("How do I begin?").await? {
//!     println!("{}: {}", passage.source(), passage.text);
//! }
//! # Ok(()) }
//! ```

mod chunk;
mod document;
mod index;
mod passage;
mod retriever;
mod tool;

pub use self::{
    chunk::{Chunk, Chunker, TextKind},
    document::Document,
    index::{IndexProgress, IndexReport},
    passage::Passage,
    retriever::{Retriever, Search},
    tool::KnowledgeTool,
};
