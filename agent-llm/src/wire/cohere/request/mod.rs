//! Reading requests back.

mod params;

use agent_core::Result;
use serde_json::{Map, Value};

use super::settings::Settings;
use crate::{
    ParsedRequest,
    wire::{
        json::laid_over,
        openai_chat::{
            message::Manner,
            request::{message::Reader, read_body},
        },
    },
};

/// Reads the body of a request. What the framework's own terms do not say exactly is kept as it came: messages, parts and
/// tools beside what was understood of them, and fields of the request in `extra`.
pub(super) fn decode_request(body: &str, manner: &Manner) -> Result<ParsedRequest> {
    let mut reader = Reader::new(manner);
    let (mut parsed, said) = read_body(body, manner, |json| reader.read(json))?;
    parsed.stream = said.get("stream") == Some(&Value::Bool(true));
    parsed.params = params::read(&said);
    let written = Settings::new("", &parsed.params, !parsed.tools.is_empty(), parsed.stream);
    let written = serde_json::to_value(written).unwrap_or_default();
    let said: Map<_, _> = said.into_iter().filter(|(name, value)| !(name == "stream" && value == false)).collect();
    if let Some(Value::Object(extra)) = laid_over(&written, &said.into()) {
        parsed.params.extra = extra;
    }
    Ok(parsed)
}
