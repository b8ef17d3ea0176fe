//! Check that a decoded response is complete and correct.

use agent::{Block, Error, ErrorKind, ModelResponse, Retry, core::FinishReason, llm::conformance::json};
use http::StatusCode;
use serde_json::Value;

use super::{Outcome, Subject};
use crate::recordings::{Called, Recording, Said};

pub(super) fn check(subject: &Subject<'_>) -> Outcome {
    match &subject.recording {
        Recording::Refused(status) => {
            let body = &subject.exchange.response.body;
            let error = subject.codec.decode_error(*status, &subject.exchange.headers(), body.as_bytes());
            let mut complaints = complaints_about(&error, body);
            complaints.extend(other_class(*status, &error));
            Outcome::of(complaints)
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
    complaints.extend(other_finish(subject.wire.finish(whole), &response));
    if let Some(total) = subject.wire.tokens(whole).filter(|total| *total != response.usage.total()) {
        complaints.push(format!("usage: {total} tokens became {:?}", response.usage));
    }
    Outcome::of(complaints)
}

/// Providers' finish reasons in lower case.
const FINISHES: [(&[&str], FinishReason); 4] = [
    (&["stop", "end_turn", "stop_sequence", "complete", "completed", "eos"], FinishReason::Stop),
    (&["tool_calls", "tool_use", "tool_call", "function_call"], FinishReason::ToolCalls),
    (
        &["length", "max_tokens", "max_output_tokens", "model_length", "model_context_window_exceeded"],
        FinishReason::Length,
    ),
    (
        &["content_filter", "safety", "guardrail_intervened", "content_filtered", "recitation"],
        FinishReason::ContentFilter,
    ),
];

/// Returns a complaint if the finish reason is not the provider's `reason`. Calls are executed
/// whatever reason for the end was given, and a turn that only refuses was filtered.
fn other_finish(reason: &str, response: &ModelResponse) -> Option<String> {
    let reason = reason.to_lowercase();
    let (_, known) = FINISHES.iter().find(|(names, _)| names.contains(&&*reason))?;
    let is_ended = matches!(known, FinishReason::Stop | FinishReason::ToolCalls);
    let right = match (&response.finish, known) {
        (FinishReason::ContentFilter, _) if is_ended => true,
        (finish, _) if is_ended && response.message.has_calls() => *finish == FinishReason::ToolCalls,
        (finish, known) => finish == known,
    };
    (!right).then(|| format!("finish: {reason:?} became {:?}", response.finish))
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

/// Returns a complaint if the class of a refusal is not the one that its status and its words
/// imply.
fn other_class(status: StatusCode, error: &Error) -> Option<String> {
    let words = error.message().to_lowercase();
    let has = |all: &[&str]| all.iter().all(|word| words.contains(word));
    let is_too_long = [
        &["prompt", "too long"][..],
        &["input", "too long"],
        &["messages", "too long"],
        &["context", "exceed"],
        &["maximum context length"],
        &["input token", "exceed"],
    ];
    let classes: &[ErrorKind] = match status.as_u16() {
        401 => &[ErrorKind::Authentication],
        403 => &[ErrorKind::Authentication, ErrorKind::Quota, ErrorKind::ContentFiltered],
        429 => &[ErrorKind::RateLimited, ErrorKind::Quota, ErrorKind::Overloaded],
        503 | 529 => &[ErrorKind::Overloaded],
        400 | 413 | 422 if is_too_long.into_iter().any(has) => &[ErrorKind::ContextOverflow],
        _ => return None,
    };
    (!classes.contains(&error.kind()))
        .then(|| format!("status {status} with these words is {:?}: {error}", error.kind()))
}

/// Serialises everything that is stored of a response.
pub(crate) fn to_json(response: &ModelResponse) -> Value {
    // Via text, since raw JSON is compared too.
    let json = serde_json::to_string(response).expect("a response can be kept");
    serde_json::from_str(&json).expect("it is JSON")
}
