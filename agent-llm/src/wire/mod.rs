//! The wires, one folder per protocol, and what they share.

mod lenient;
mod open_struct;
pub(crate) mod openai_chat;
mod surrogates;
