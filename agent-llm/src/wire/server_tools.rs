//! Tools that a provider has itself: what all wires have in common.

use std::borrow::Cow;

use agent_core::{Error, ErrorKind, ModelParams, Result, Retry, ToolSpec, model::Modality, tool::ServerTool};

/// What a wire has no word for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lack {
    /// The tool.
    Tool,
    /// This of the tool.
    Option(&'static str),
}

/// Which wires have a tool, by its kind.
const WIRES: [(&str, &str); 7] = [
    ("web_search", "messages, responses, generate, chat with some providers"),
    ("web_fetch", "messages, generate"),
    ("code_execution", "messages, responses, generate"),
    ("file_search", "responses, generate"),
    ("image_generation", "responses"),
    ("computer", "messages, responses"),
    ("mcp", "messages, responses, generate"),
];

/// Checks that the provider has all of these tools that only it can run.
///
/// # Errors
/// [`InvalidRequest`](ErrorKind::InvalidRequest) that says what it lacks, and which wires have the tool.
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

/// Checks that an answer is wanted in words alone.
///
/// # Errors
/// [`InvalidRequest`](ErrorKind::InvalidRequest) that says `instead`.
pub(crate) fn check_text_alone(params: &ModelParams, instead: &str) -> Result<()> {
    if params.voice.is_none() && params.modalities.iter().all(|modality| *modality == Modality::Text) {
        return Ok(());
    }
    Err(refusal(format!("the answers of this wire are text: {instead}")))
}

/// Checks that nobody wants thinking to be counted, of a wire or a model that has no word for that.
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

/// The error for what cannot be asked of a provider.
pub(crate) fn refusal(message: impl Into<Cow<'static, str>>) -> Error {
    Error::new(ErrorKind::InvalidRequest, message).with_retry(Retry::Permanent)
}
