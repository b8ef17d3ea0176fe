//! Helpers shared by the examples.

pub mod models;
pub mod show;
