//! The wire of OpenAI Chat Completions.

#[path = "../common/mod.rs"]
mod common;

mod decode;
mod details;
mod encode;
mod mistral;
mod pathologies;
mod properties;
mod requests;
mod stream;
