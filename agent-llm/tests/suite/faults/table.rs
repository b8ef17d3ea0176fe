//! Faults and their expected outcomes.

use std::{sync::Arc, time::Duration};

use agent_core::{ErrorKind, ModelResponse, Retry, engine::unique_ids};
use agent_llm::{
    Framing, RequestReader,
    conformance::{Answer, framed},
};
use bytes::Bytes;

use super::{
    provider::{Attempt, End},
    samples::{Row, text_of},
};

/// One fault of an answer.
pub(crate) struct Fault {
    pub(crate) name: &'static str,
    pub(crate) attempt: fn(&Said) -> Attempt,
    pub(crate) expect: Expect,
    /// True if a stream is requested.
    pub(crate) streams: bool,
    /// True if text is emitted before the fault.
    pub(crate) speaks: bool,
    /// Maximum size of the answer, in bytes.
    pub(crate) most: usize,
    /// The only framing in which the fault can happen.
    only: Option<Framing>,
}

/// Expected outcome of a fault.
pub(crate) enum Expect {
    Error(ErrorKind, Retry),
    /// An answer, with a function that returns what is wrong with it.
    Answer(fn(&Said, &ModelResponse) -> Option<String>),
}

const AGAIN: Retry = Retry::Temporary(None);

/// A stream that fails before it emits anything.
const STREAM: Fault = Fault {
    name: "",
    attempt: |_| Attempt::nothing(),
    expect: Expect::Error(ErrorKind::Timeout, AGAIN),
    streams: true,
    speaks: false,
    most: 1 << 20,
    only: None,
};

const SSE: Option<Framing> = Some(Framing::ServerSentEvents);
const AWS: Option<Framing> = Some(Framing::AwsEvents);

pub(crate) const FAULTS: &[Fault] = &[
    Fault {
        name: "a status that says to wait",
        attempt: |_| Attempt::of(429, "application/json", "{}").header("retry-after", "7"),
        expect: Expect::Error(ErrorKind::RateLimited, Retry::Temporary(Some(Duration::from_secs(7)))),
        ..STREAM
    },
    Fault {
        name: "a status of an overloaded server",
        attempt: |_| Attempt::of(503, "text/plain", "no healthy upstream"),
        expect: Expect::Error(ErrorKind::Overloaded, AGAIN),
        ..STREAM
    },
    Fault {
        name: "a status that cannot pass",
        attempt: |_| Attempt::of(401, "application/json", ""),
        expect: Expect::Error(ErrorKind::Authentication, Retry::Permanent),
        ..STREAM
    },
    Fault {
        name: "a refusal that breaks off",
        attempt: |_| Attempt::of(500, "application/json", "{\"error\": {\"mess").ends(End::Reset),
        expect: Expect::Error(ErrorKind::Provider, AGAIN),
        ..STREAM
    },
    Fault {
        name: "a cut between two events",
        attempt: |said| said.pieces([said.half()], End::Closed),
        expect: Expect::Error(ErrorKind::Truncated, AGAIN),
        speaks: true,
        ..STREAM
    },
    Fault {
        name: "a cut within an event",
        attempt: |said| said.pieces([said.half(), said.spoken().slice(..said.spoken().len() / 2)], End::Closed),
        expect: Expect::Error(ErrorKind::Truncated, AGAIN),
        speaks: true,
        ..STREAM
    },
    Fault {
        name: "a cut before the first byte",
        attempt: |said| said.pieces([], End::Closed),
        expect: Expect::Error(ErrorKind::Truncated, AGAIN),
        ..STREAM
    },
    Fault {
        name: "a whole body that is cut",
        attempt: |said| {
            Attempt::of(200, "application/json", said.text.whole()[..said.text.whole().len() / 2].to_owned())
        },
        expect: Expect::Error(ErrorKind::Protocol, AGAIN),
        streams: false,
        ..STREAM
    },
    Fault {
        name: "a stall",
        attempt: |said| said.pieces([said.half()], End::Silence),
        expect: Expect::Error(ErrorKind::Timeout, AGAIN),
        speaks: true,
        ..STREAM
    },
    Fault {
        name: "a stall of a whole body",
        attempt: |said| Attempt::whole(&said.text).ends(End::Silence),
        expect: Expect::Error(ErrorKind::Timeout, AGAIN),
        streams: false,
        ..STREAM
    },
    Fault {
        name: "a cut within the first bytes of a frame",
        attempt: |said| said.pieces([said.half(), said.spoken().slice(..6)], End::Closed),
        expect: Expect::Error(ErrorKind::Truncated, AGAIN),
        speaks: true,
        only: AWS,
        ..STREAM
    },
    Fault {
        name: "a changed byte in a frame",
        attempt: |said| said.pieces([said.half(), said.with_changed_byte(|length| length / 2)], End::Closed),
        expect: Expect::Error(ErrorKind::Protocol, AGAIN),
        speaks: true,
        only: AWS,
        ..STREAM
    },
    Fault {
        name: "a changed checksum of a frame",
        attempt: |said| said.pieces([said.half(), said.with_changed_byte(|length| length - 1)], End::Closed),
        expect: Expect::Error(ErrorKind::Protocol, AGAIN),
        speaks: true,
        only: AWS,
        ..STREAM
    },
    Fault {
        name: "frames that come one byte at a time",
        attempt: |said| {
            let bytes = said.framed(said.text.events());
            said.pieces((0..bytes.len()).map(|at| bytes.slice(at..=at)), End::Closed)
        },
        expect: Expect::Answer(is_the_text),
        only: AWS,
        ..STREAM
    },
    Fault {
        name: "a frame that says that it is huge",
        attempt: |said| {
            let piece = Bytes::from(vec![0x7f; 1 << 20]);
            said.pieces([said.half(), piece], End::Never)
        },
        expect: Expect::Error(ErrorKind::Protocol, Retry::Permanent),
        speaks: true,
        most: 64 << 20,
        only: AWS,
        ..STREAM
    },
    Fault {
        name: "garbage in an event",
        attempt: |said| said.pieces([said.half(), "data: \u{1}{]\n\n".into()], End::Closed),
        expect: Expect::Error(ErrorKind::Protocol, AGAIN),
        speaks: true,
        only: SSE,
        ..STREAM
    },
    Fault {
        name: "bytes that are not UTF-8, one at a time",
        attempt: |said| {
            let bytes = said.with_bad_byte();
            said.pieces((0..bytes.len()).map(|at| bytes.slice(at..=at)), End::Closed)
        },
        expect: Expect::Answer(|said, response| {
            let good = said.good(&said.text).message.text();
            let text = response.message.text();
            // Some wires repeat the text at the end.
            let is_right = text.replace('\u{fffd}', "") == good;
            (!is_right).then(|| format!("{good:?}, perhaps with a replacement character, not {text:?}"))
        }),
        only: SSE,
        ..STREAM
    },
    Fault {
        name: "calls that share an id",
        attempt: |said| said.pieces([said.with_one_id()], End::Closed),
        expect: Expect::Answer(|said, response| {
            let mut message = response.message.clone();
            unique_ids(&mut message);
            let names: Vec<_> = message.calls().map(|call| (call.name.clone(), call.arguments.clone())).collect();
            let good = said.good(&said.calls).message;
            let same = good.calls().map(|call| (call.name.clone(), call.arguments.clone())).eq(names);
            (!same).then(|| format!("the calls of {good:?}, not {message:?}"))
        }),
        ..STREAM
    },
    Fault {
        name: "a stream that never ends",
        attempt: |said| said.pieces([said.half(), said.spoken()], End::Never),
        expect: Expect::Error(ErrorKind::Protocol, Retry::Permanent),
        speaks: true,
        ..STREAM
    },
    Fault {
        name: "a whole body that never ends",
        attempt: |said| Attempt::whole(&said.text).ends(End::Never),
        expect: Expect::Error(ErrorKind::Protocol, Retry::Permanent),
        streams: false,
        ..STREAM
    },
    Fault {
        name: "a huge event",
        attempt: |said| {
            let piece = Bytes::from(vec![b'x'; 1 << 20]);
            said.pieces([Bytes::from_static(b"data: {\"x\":\""), piece], End::Never)
        },
        expect: Expect::Error(ErrorKind::Protocol, Retry::Permanent),
        most: 64 << 20,
        only: SSE,
        ..STREAM
    },
    Fault {
        name: "a reset",
        attempt: |said| said.pieces([said.half()], End::Reset),
        expect: Expect::Error(ErrorKind::Transport, AGAIN),
        speaks: true,
        ..STREAM
    },
    Fault {
        name: "a reset after the answer",
        attempt: |said| said.stream().ends(End::Reset),
        expect: Expect::Answer(is_the_text),
        ..STREAM
    },
    Fault {
        name: "a head that does not come",
        attempt: |_| Attempt::nothing(),
        expect: Expect::Error(ErrorKind::Timeout, AGAIN),
        ..STREAM
    },
    Fault {
        name: "a web page",
        attempt: |_| Attempt::of(200, "text/html; charset=utf-8", "<html><body>Sign in</body></html>"),
        expect: Expect::Error(ErrorKind::Protocol, Retry::Permanent),
        ..STREAM
    },
    Fault {
        name: "a whole answer where a stream was asked for",
        attempt: |said| Attempt::whole(&said.text),
        expect: Expect::Answer(is_the_text),
        ..STREAM
    },
    Fault {
        name: "a stream that calls itself plain text",
        attempt: |said| Attempt::of(200, "text/plain", said.framed(said.text.events())),
        expect: Expect::Answer(is_the_text),
        ..STREAM
    },
    Fault {
        name: "an error event in the middle",
        attempt: |said| said.pieces([said.half(), said.framed([&said.overloaded])], End::Closed),
        expect: Expect::Error(ErrorKind::Overloaded, AGAIN),
        speaks: true,
        ..STREAM
    },
];

fn is_the_text(said: &Said, response: &ModelResponse) -> Option<String> {
    let good = said.good(&said.text).message.text();
    (response.message.text() != good).then(|| format!("{good:?}, not {response:?}"))
}

/// Responses of one wire's servers.
pub(crate) struct Said {
    row: &'static Row,
    pub(crate) codec: Arc<dyn RequestReader>,
    /// An answer of text.
    pub(crate) text: Answer,
    /// An answer with two calls.
    calls: Answer,
    /// Event with which an overloaded server reports its state.
    overloaded: String,
    /// Index of the first event with text, and the text.
    word: (usize, String),
}

impl Said {
    pub(crate) fn of(row: &'static Row) -> Self {
        let text = row.text();
        let word = row.event(&text, text_of).expect("the text is heard");
        let samples = (row.samples)();
        let mut interruptions = samples.interruptions();
        let overloaded = interruptions.find(|(_, kind)| *kind == ErrorKind::Overloaded).and_then(|(all, _)| all.last());
        let overloaded = overloaded.expect("an overloaded server").clone();
        Self { row, codec: (row.codec)(), text, calls: row.calls(), overloaded, word }
    }

    pub(crate) fn wire(&self) -> &str {
        self.row.wire
    }

    /// Decodes a non-streamed answer.
    pub(crate) fn good(&self, answer: &Answer) -> ModelResponse {
        self.codec.decode(answer.whole().as_bytes()).expect("the sample is good")
    }

    /// Returns true if this fault can happen to an answer of the wire.
    pub(crate) fn may_meet(&self, fault: &Fault) -> bool {
        fault.only.is_none_or(|only| only == self.codec.framing())
    }

    /// Encodes these events in the wire's framing.
    fn framed<E: AsRef<str>>(&self, events: impl IntoIterator<Item = E>) -> Bytes {
        framed(self.codec.framing(), events).into()
    }

    /// A stream of these pieces.
    fn pieces(&self, pieces: impl IntoIterator<Item = Bytes>, end: End) -> Attempt {
        let kind = match self.codec.framing() {
            Framing::AwsEvents => "application/vnd.amazon.eventstream",
            _ => "text/event-stream",
        };
        Attempt::pieces(kind, pieces, end)
    }

    /// The streamed answer of text.
    pub(crate) fn stream(&self) -> Attempt {
        self.pieces([self.framed(self.text.events())], End::Closed)
    }

    /// The stream up to its first word.
    fn half(&self) -> Bytes {
        self.framed(&self.text.events()[..=self.word.0])
    }

    /// The event with the first word.
    fn spoken(&self) -> Bytes {
        self.framed([&self.text.events()[self.word.0]])
    }

    /// The event with the first word, with one bit flipped.
    fn with_changed_byte(&self, place: fn(usize) -> usize) -> Bytes {
        let mut bytes = self.spoken().to_vec();
        let at = place(bytes.len());
        bytes[at] ^= 1;
        bytes.into()
    }

    /// The stream of text, with an invalid UTF-8 byte after its first word.
    fn with_bad_byte(&self) -> Bytes {
        let (stream, word) = (self.text.stream(), &self.word.1);
        let at = stream.find(word).expect("the word stands in the stream as it is") + word.len();
        let (before, after) = stream.as_bytes().split_at(at);
        [before, b"\xFF", after].concat().into()
    }

    /// The stream of calls, all of which have the id of the first.
    fn with_one_id(&self) -> Bytes {
        let ids: Vec<_> = self.good(&self.calls).message.calls().map(|call| call.id.clone()).collect();
        let one = |event: &String| ids.iter().fold(event.clone(), |event, id| event.replace(&**id, &ids[0]));
        self.framed(self.calls.events().iter().map(one))
    }
}
