//! Compaction: strategies, triggers, and effects on the run.

#[path = "../common/mod.rs"]
mod common;

mod cost;
mod emergency;
mod outputs;
mod random;
mod strategies;
mod summary;
mod triggers;
mod wild;
mod world;
