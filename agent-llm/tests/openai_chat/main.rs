//! The wire of OpenAI Chat Completions.

#[path = "../common/mod.rs"]
mod common;

mod decode;
mod encode;
mod properties;
mod stream;
