//! Gemini's `generateContent`.
#![allow(clippy::needless_pass_by_value, reason = "JSON is written where it is passed")]

use crate::common;
mod decode;
mod encode;
mod errors;
mod model;
mod parse;
mod properties;
mod settings;
mod stream;
mod support;
