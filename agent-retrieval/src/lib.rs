//! Contracts of retrieval for authors of embedders, rerankers and stores, without any I/O.
//!
//! | module | content |
//! |---|---|
//! | [`embed`] | texts to vectors: [`Embedder`](embed::Embedder) |
//! | [`rank`] | order of passages by relevance: [`Reranker`](rank::Reranker) |
//! | [`retrieval`] | records that are found by words and vectors: [`VectorStore`](retrieval::VectorStore) |
//! | [`memory`] | memories and chat messages across sessions: [`MemoryStore`](memory::MemoryStore), [`ChatMessageStore`](memory::ChatMessageStore) |
//! | [`search`] | words, BM25, cosine, fusion of rankings |
//!
//! Implementations are in `agent-llm` (models that embed and rank), `agent-store` (stores) and
//! `agent-tools` (splitting documents, the retriever).

pub mod embed;
pub mod memory;
pub mod rank;
pub mod retrieval;
pub mod search;
