//! What every [`Codec`](crate::Codec) must do, checked in one call: for authors of wires.
//!
//! The suite knows nothing of the wire. It is given [`Samples`]: what the wire's servers say, an answer in both its forms,
//! whole and streamed. From these it makes what else it needs: cut streams, bytes that come in pieces, fields that nobody
//! knows, data that was damaged.
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
//! # The claims
//!
//! | claim | what is done |
//! |---|---|
//! | the samples are what they say | each turn stands in its body, each body and event is read |
//! | requests are JSON, paired, and without keys | a conversation with calls, images and another provider's content is encoded |
//! | what was written before is written the same | a history that grew is encoded like one that was always so long |
//! | requests survive being read | what is decoded is encoded again, field by field equal |
//! | a stream makes the message that comes whole | both forms of each answer are compared |
//! | chunks tell the message | blocks begin in order, end once, and make the same message |
//! | a cut stream is seen | each stream is ended after each of its events |
//! | bytes may be cut anywhere | each stream is split at each of its bytes |
//! | a turn goes back as it came | byte for byte if it came whole, by value if it was streamed |
//! | an edit loses nothing | a turn that is marked as edited is written and read again |
//! | unknown fields are kept | a field is added to each object of a turn, an event to each stream |
//! | damaged data is an answer or an error | frames, bodies and requests are changed at random; nothing panics |
//! | errors say what layers need | class, retry, the provider's delay and request id, no key |

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

/// Checks everything that must hold of a codec, and reports what does not.
pub fn check(codec: impl RequestReader, samples: &Samples) -> Report {
    let codec: Arc<dyn RequestReader> = Arc::new(codec);
    let mut report = Report::new(codec.origin());
    for (claim, check) in CLAIMS {
        report.add(claim, || check(&codec, samples));
    }
    report
}

/// Says what is wrong, one line each.
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
