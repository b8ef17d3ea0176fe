//! The wires, one folder per protocol, and what they share.

pub(crate) mod anthropic;
pub(crate) mod endpoint;
pub(crate) mod json;
mod lenient;
mod merge;
mod open_struct;
pub(crate) mod openai_chat;
mod surrogates;
