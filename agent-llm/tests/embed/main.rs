//! Embedders.

mod hashed;
