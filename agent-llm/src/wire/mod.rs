//! Wires, one folder per protocol, and their shared code.

mod annotations;
pub(crate) mod anthropic;
pub(crate) mod bedrock_converse;
pub(crate) mod blocks;
mod body;
mod cache_control;
mod check;
pub(crate) mod claude;
pub(crate) mod cohere;
mod content;
mod details;
mod ended;
pub(crate) mod endpoint;
mod events;
mod fields;
pub(crate) mod gemini;
mod ids;
pub(crate) mod json;
mod lenient;
mod merge;
pub(crate) mod ollama;
mod open_struct;
pub(crate) mod openai_chat;
pub(crate) mod openai_responses;

mod alternating_roles;
pub(crate) mod profile;
#[cfg(feature = "requests")]
mod request;
mod schema;
mod server_tools;
mod settings;
pub(crate) mod surrogates;
mod usage;
