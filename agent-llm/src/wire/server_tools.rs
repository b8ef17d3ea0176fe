//! Provider-side tools, shared by all wires.

use std::borrow::Cow;

use agent_core::{Error, ErrorKind, ModelParams, Result, Retry, ToolSpec, model::Modality, tool::ServerTool};

/// An unsupported feature of a wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lack {
    /// The tool as a whole.
    Tool,
    /// One option of the tool.
    Option(&'static str),
}

/// Wires that support each kind of tool.
const WIRES: [(&str, &str); 7] = [
    ("web_search", "messages, responses, generate, chat with some providers"),
    ("web_fetch", "messages, generate"),
    ("code_execution", "messages, responses, generate"),
    ("file_search", "responses, generate"),
    ("image_generation", "responses"),
    ("computer", "messages, responses"),
    ("mcp", "messages, responses, generate"),
];

/// Checks that the provider supports all of these provider-side tools.
///
/// # Errors
/// [`InvalidRequest`](ErrorKind::InvalidRequest) that names the unsupported feature, and the wires
/// that support the tool.
pub(crate) fn check(specs: &[ToolSpec], wire: &str, lacks: impl Fn(&ServerTool) -> Option<Lack>) -> Result<()> {
    let tools = specs.iter().filter(|spec| spec.is_server_side() && spec.raw.is_none());
    for tool in tools.filter_map(|spec| spec.server.as_ref()) {
        let kind = tool.kind();
        match lacks(tool) {
            None => {}
            Some(Lack::Option(option)) => {
                return Err(refusal(format!("the tool '{kind}' has no {option} on the wire {wire}: leave it out")));
            }
            Some(Lack::Tool) => {
                let wires = WIRES.iter().find(|(known, _)| *known == kind).map_or("", |(_, wires)| wires);
                return Err(refusal(format!("the wire {wire} has no tool '{kind}': it is on {wires}")));
            }
        }
    }
    Ok(())
}

/// Checks that only text output is requested.
///
/// # Errors
/// [`InvalidRequest`](ErrorKind::InvalidRequest) with the alternative `instead`.
pub(crate) fn check_text_alone(params: &ModelParams, instead: &str) -> Result<()> {
    if params.voice.is_none() && params.modalities.iter().all(|modality| *modality == Modality::Text) {
        return Ok(());
    }
    Err(refusal(format!("the answers of this wire are text: {instead}")))
}

/// Checks that no thinking budget is set, for a wire or model without that parameter.
///
/// # Errors
/// [`InvalidRequest`](ErrorKind::InvalidRequest).
pub(crate) fn check_no_count(params: &ModelParams) -> Result<()> {
    match params.thinking_tokens {
        None => Ok(()),
        Some(_) => Err(refusal(NO_NUMBER)),
    }
}

pub(crate) const NO_NUMBER: &str =
    "this model is told an effort to think, and no number of tokens: set `effort` in place of `thinking_tokens`";

/// Builds the error for an unsupported request.
pub(crate) fn refusal(message: impl Into<Cow<'static, str>>) -> Error {
    Error::new(ErrorKind::InvalidRequest, message).with_retry(Retry::Permanent)
}
