//! Conformance suite for [`Codec`](crate::Codec) implementations, run with one call: for authors of
//! wires.
//!
//! The suite knows nothing about the wire. It takes [`Samples`] of server responses, with each
//! answer in both forms, whole and streamed. From these it derives the other inputs: truncated
//! streams, split bytes, unknown fields, corrupted data.
//!
//! ```
//! use agent_core::ErrorKind;
//! use agent_llm::{OpenAiChatCodec, Profile, conformance::{Answer, Samples, check}};
//!
//! let turn = r#"{"role":"assistant","content":"Hello you"}"#;
//! let whole = format!(r#"{{"id":"r1","choices":[{{"index":0,"message":{turn},"finish_reason":"stop"}}]}}"#);
//! let samples = Samples::new()
//!     .answer(Answer::new("text", whole, turn).streamed([
//!         r#"{"id":"r1","choices":[{"index":0,"delta":{"role":"assistant","content":"Hello "}}]}"#,
//!         r#"{"id":"r1","choices":[{"index":0,"delta":{"content":"you"}}]}"#,
//!         r#"{"id":"r1","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#,
//!         "[DONE]",
//!     ]))
//!     .refusal(429, r#"{"error":{"message":"Slow down.","code":"rate_limit_exceeded"}}"#, ErrorKind::RateLimited);
//! let codec = OpenAiChatCodec::new("m", Profile::compatible("acme", "http://acme.test/v1"))?;
//! check(codec, &samples).assert_clean();
//! # Ok::<(), agent_core::Error>(())
//! ```
//!
//! # Claims
//!
//! | claim | check |
//! |---|---|
//! | the samples are what they say | each turn occurs in its body; each body and event can be decoded |
//! | requests are JSON, paired, and without keys | encodes a conversation with calls, images and another provider's content |
//! | what was written before is written the same | encodes a growing history and one of full length; the common prefixes are equal |
//! | requests survive being read | decodes and encodes a request; all fields are equal |
//! | a stream makes the message that comes whole | compares both forms of each answer |
//! | chunks tell the message | blocks begin in order, end once, and add up to the same message |
//! | a cut stream is seen | ends each stream after each of its events |
//! | bytes may be cut anywhere | splits each stream at each of its bytes |
//! | a turn goes back as it came | byte for byte if it was not streamed, by value if it was |
//! | an edit loses nothing | encodes and decodes a turn that is marked as edited |
//! | unknown fields are kept | adds a field to each object of a turn, and an event to each stream |
//! | damaged data is an answer or an error | mutates frames, bodies and requests at random; nothing panics |
//! | errors say what layers need | error kind, retry hint, the provider's delay and request id, no key |

mod answers;
mod chunks;
mod damage;
mod drive;
mod errors;
pub mod json;
mod mutate;
mod paired;
mod report;
mod requests;
mod sample;
mod streams;
mod turns;

use std::sync::Arc;

pub use self::{
    mutate::Mutator,
    paired::refusals,
    report::Report,
    sample::{Answer, Samples, event_stream},
};
use crate::RequestReader;
pub use crate::framing::framed;

/// Checks all claims about a codec, and reports those that do not hold.
pub fn check(codec: impl RequestReader, samples: &Samples) -> Report {
    let codec: Arc<dyn RequestReader> = Arc::new(codec);
    let mut report = Report::new(codec.origin());
    for (claim, check) in CLAIMS {
        report.add(claim, || check(&codec, samples));
    }
    report
}

/// Check of one claim; returns its complaints, one line each.
type Claim = fn(&Arc<dyn RequestReader>, &Samples) -> Vec<String>;

const CLAIMS: [(&str, Claim); 13] = [
    ("the samples are what they say", answers::samples_are_read),
    ("requests are JSON, paired, and without keys", requests::are_paired),
    ("what was written before is written the same", requests::grow),
    ("requests survive being read", requests::survive),
    ("a stream makes the message that comes whole", answers::fold),
    ("chunks tell the message", chunks::tell_the_message),
    ("a cut stream is seen", streams::cut),
    ("bytes may be cut anywhere", streams::split),
    ("a turn goes back as it came", turns::go_back),
    ("an edit loses nothing", turns::survive_an_edit),
    ("unknown fields are kept", turns::keep_unknown_fields),
    ("damaged data is an answer or an error", damage::never_panics),
    ("errors say what layers need", errors::say_what_layers_need),
];
