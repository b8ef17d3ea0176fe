//! Texts as vectors: embedders by their names, and one that needs neither key nor network.

mod hashed;

pub use self::hashed::HashedEmbedder;
