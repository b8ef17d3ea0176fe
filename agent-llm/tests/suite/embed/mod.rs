//! Embedders and rerankers.

mod conformance;
mod families;
mod hashed;
mod layers;
mod names;
mod provider;
mod rank;
mod texts;
