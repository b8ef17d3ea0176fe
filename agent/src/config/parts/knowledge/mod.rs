//! Documents, memories and what makes vectors of them, by name.

mod embedder;
mod library;
mod vectors;

pub(super) use self::{
    embedder::EmbedderRef,
    library::{LibraryConfig, tools},
    vectors::Vectors,
};
