//! Decoding of requests.

use agent_core::Result;
use serde_json::Value;

use super::settings::{fields, params};
use crate::{
    ParsedRequest,
    wire::openai_chat::{
        messages::MessageStyle,
        request::{Reader, read_body},
    },
};

/// Decodes a request body. Content that this framework's types cannot represent exactly is kept
/// raw: messages, parts and tools alongside their decoded form, and fields of the request in
/// `extra`.
pub(super) fn decode_request(body: &str, manner: &MessageStyle) -> Result<ParsedRequest> {
    let mut body = read_body(body, manner)?;
    let mut reader = Reader::new(manner);
    body.read_messages(|json| reader.read(json))?;
    body.said.retain(|name, value| !(name == "stream" && value == &Value::Bool(false)));
    let (parsed, said) = (&mut body.parsed, &body.said);
    parsed.stream = said.get("stream").is_some_and(|said| said == true);
    parsed.params = params(&said.clone().into());
    let written = fields("", &parsed.params, !parsed.tools.is_empty(), parsed.stream).into();
    Ok(body.finish(written))
}
