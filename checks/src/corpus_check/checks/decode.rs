//! Check that a decoded response is complete and correct.

use agent::{Block, Error, ErrorKind, ModelResponse, Retry, llm::conformance::json};
use serde_json::Value;

use super::{Outcome, Subject};
use crate::recordings::{Called, Recording, Said};

pub(super) fn check(subject: &Subject<'_>) -> Outcome {
    match &subject.recording {
        Recording::Refused(status) => {
            let body = &subject.exchange.response.body;
            let error = subject.codec.decode_error(*status, &subject.exchange.headers(), body.as_bytes());
            Outcome::of(complaints_about(&error, body))
        }
        Recording::Error | Recording::Interrupted => match subject.response() {
            Ok(_) => Outcome::failed("an error was taken for an answer"),
            Err(error) => Outcome::of(complaints_about(&error, &subject.exchange.response.body)),
        },
        Recording::Cut => match subject.response() {
            Err(error) if error.kind() == ErrorKind::Truncated => Outcome::Passed,
            Err(error) => Outcome::failed(format!("a cut stream gave another error: {error}")),
            Ok(_) => Outcome::failed("a cut stream was taken for an answer"),
        },
        Recording::Broken(why) => {
            drop(subject.response()); // it must not panic
            Outcome::NotCheckable(why)
        }
        Recording::Whole(whole) | Recording::Streamed(whole) => answer(subject, whole),
    }
}

fn answer(subject: &Subject<'_>, whole: &Value) -> Outcome {
    let (turn, response) = match (subject.wire.turn(whole), subject.response()) {
        // A body with a success status that is not a response.
        (None, Err(error)) => return Outcome::of(complaints_about(&error, "")),
        (None, Ok(response)) if response.message.is_empty() => return Outcome::Passed,
        (None, Ok(_)) => return Outcome::failed("there is no turn, and yet a message"),
        (Some(_), Err(error)) => return Outcome::failed(format!("an answer was not read: {error:?}")),
        (Some(turn), Ok(response)) => (turn, response),
    };
    let kept = to_json(&response);
    let mut complaints = json::lost(&turn, &kept);
    complaints.extend(json::lost(&subject.wire.beside(whole), &kept));
    complaints.extend(misread(&subject.wire.meant(subject.exchange, &turn), &response));
    if let Some(total) = subject.wire.tokens(whole).filter(|total| *total != response.usage.total()) {
        complaints.push(format!("usage: {total} tokens became {:?}", response.usage));
    }
    Outcome::of(complaints)
}

/// Lists the differences between the blocks and the recorded turn.
fn misread(said: &Said, response: &ModelResponse) -> Vec<String> {
    let mut read = Said::default();
    for block in response.message.blocks() {
        match block {
            Block::Text(block) => read.text.push_str(&block.text),
            Block::Reasoning(block) => {
                read.reasoning.push_str(&block.text);
                read.more |= block.text.is_empty(); // only its provider can read it
            }
            Block::ToolCall(call) => read.calls.push(Called {
                id: call.id.to_string(),
                name: call.name.to_string(),
                arguments: call.arguments.clone().into(),
            }),
            _ => read.more = true,
        }
    }
    let mut out = said.differences(&read);
    if read.calls.iter().any(|call| call.id.is_empty()) {
        out.push("a call was given no id".into());
    }
    if read.is_empty() && !said.is_empty() {
        out.push("something was said, and the message is empty".into());
    }
    out
}

/// Lists the faults of an error: its kind must be one that layers act on, and its message must
/// contain the provider's text.
pub(crate) fn complaints_about(error: &Error, body: &str) -> Vec<String> {
    let mut out = Vec::new();
    if matches!(error.kind(), ErrorKind::Unexpected) {
        out.push(format!("the error has no class: {error}"));
    }
    if error.retry() == Retry::Unknown {
        out.push(format!("nobody knows whether to try again: {error}"));
    }
    if error.message().is_empty() || !body.trim().is_empty() && error.message().contains("gave no reason") {
        out.push(format!("the provider's words are lost: {error}"));
    }
    out
}

/// Serialises everything that is stored of a response.
pub(crate) fn to_json(response: &ModelResponse) -> Value {
    // Via text, since raw JSON is compared too.
    let json = serde_json::to_string(response).expect("a response can be kept");
    serde_json::from_str(&json).expect("it is JSON")
}
