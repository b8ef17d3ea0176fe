//! What the examples share.

pub mod models;
pub mod show;
