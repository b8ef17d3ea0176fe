//! The wire of OpenAI Chat Completions.

use crate::common;

mod decode;
mod details;
mod encode;
mod mistral;
mod pathologies;
mod properties;
mod requests;
mod stream;
