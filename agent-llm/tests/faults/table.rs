//! The faults, and what becomes of each.

use std::{sync::Arc, time::Duration};

use agent_core::{ErrorKind, ModelResponse, Retry, engine::unique_ids};
use agent_llm::{
    RequestReader,
    conformance::{Answer, event_stream},
};
use bytes::Bytes;

use crate::{
    provider::{Attempt, End},
    samples::{Row, text_of},
};

/// One way in which an answer goes wrong.
pub(crate) struct Fault {
    pub(crate) name: &'static str,
    pub(crate) attempt: fn(&Said) -> Attempt,
    pub(crate) expect: Expect,
    /// Whether a stream was asked for.
    pub(crate) streams: bool,
    /// Whether text is heard before it goes wrong.
    pub(crate) speaks: bool,
    /// The most bytes that the answer may have.
    pub(crate) most: usize,
}

/// What a fault becomes.
pub(crate) enum Expect {
    Error(ErrorKind, Retry),
    /// An answer, of which this says what is wrong.
    Answer(fn(&Said, &ModelResponse) -> Option<String>),
}

const AGAIN: Retry = Retry::Temporary(None);

/// A stream of which nothing is heard before it fails.
const STREAM: Fault = Fault {
    name: "",
    attempt: |_| Attempt::nothing(),
    expect: Expect::Error(ErrorKind::Timeout, AGAIN),
    streams: true,
    speaks: false,
    most: 1 << 20,
};

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
        attempt: |said| Attempt::pieces([said.half()], End::Closed),
        expect: Expect::Error(ErrorKind::Truncated, AGAIN),
        speaks: true,
        ..STREAM
    },
    Fault {
        name: "a cut within an event",
        attempt: |said| Attempt::pieces([said.half(), Bytes::from_static(b"data: {\"id\":\"r1\",")], End::Closed),
        expect: Expect::Error(ErrorKind::Truncated, AGAIN),
        speaks: true,
        ..STREAM
    },
    Fault {
        name: "a cut before the first byte",
        attempt: |_| Attempt::pieces([], End::Closed),
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
        attempt: |said| Attempt::pieces([said.half()], End::Silence),
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
        name: "garbage in an event",
        attempt: |said| Attempt::pieces([said.half(), "data: \u{1}{]\n\n".into()], End::Closed),
        expect: Expect::Error(ErrorKind::Protocol, AGAIN),
        speaks: true,
        ..STREAM
    },
    Fault {
        name: "bytes that are not UTF-8, one at a time",
        attempt: |said| {
            let bytes = said.with_bad_byte();
            Attempt::pieces((0..bytes.len()).map(|at| bytes.slice(at..=at)), End::Closed)
        },
        expect: Expect::Answer(|said, response| {
            let good = said.good(&said.text).message.text();
            let text = response.message.text();
            // Some wires say the text again at the end.
            let is_right = text.replace('\u{fffd}', "") == good;
            (!is_right).then(|| format!("{good:?}, perhaps with a replacement character, not {text:?}"))
        }),
        ..STREAM
    },
    Fault {
        name: "calls that share an id",
        attempt: |said| Attempt::pieces([said.with_one_id().into()], End::Closed),
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
        attempt: |said| Attempt::pieces([said.half(), said.spoken()], End::Never),
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
        attempt: |_| {
            let piece = Bytes::from(vec![b'x'; 1 << 20]);
            Attempt::pieces([Bytes::from_static(b"data: {\"x\":\""), piece], End::Never)
        },
        expect: Expect::Error(ErrorKind::Protocol, Retry::Permanent),
        most: 64 << 20,
        ..STREAM
    },
    Fault {
        name: "a reset",
        attempt: |said| Attempt::pieces([said.half()], End::Reset),
        expect: Expect::Error(ErrorKind::Transport, AGAIN),
        speaks: true,
        ..STREAM
    },
    Fault {
        name: "a reset after the answer",
        attempt: |said| Attempt::stream(&said.text).ends(End::Reset),
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
        attempt: |said| Attempt::of(200, "text/plain", said.text.stream()),
        expect: Expect::Answer(is_the_text),
        ..STREAM
    },
    Fault {
        name: "an error event in the middle",
        attempt: |said| Attempt::pieces([said.half(), event_stream([&said.overloaded]).into()], End::Closed),
        expect: Expect::Error(ErrorKind::Overloaded, AGAIN),
        speaks: true,
        ..STREAM
    },
];

fn is_the_text(said: &Said, response: &ModelResponse) -> Option<String> {
    let good = said.good(&said.text).message.text();
    (response.message.text() != good).then(|| format!("{good:?}, not {response:?}"))
}

/// What the servers of one wire say.
pub(crate) struct Said {
    row: &'static Row,
    pub(crate) codec: Arc<dyn RequestReader>,
    /// An answer of text.
    pub(crate) text: Answer,
    /// An answer with two calls.
    calls: Answer,
    /// The event by which an overloaded server says that it is.
    overloaded: String,
    /// The first event that says text, and the text.
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

    /// What an answer is that came whole.
    pub(crate) fn good(&self, answer: &Answer) -> ModelResponse {
        self.codec.decode(answer.whole().as_bytes()).expect("the sample is good")
    }

    /// The stream up to its first word.
    fn half(&self) -> Bytes {
        event_stream(&self.text.events()[..=self.word.0]).into()
    }

    /// The event that says the first word.
    fn spoken(&self) -> Bytes {
        event_stream([&self.text.events()[self.word.0]]).into()
    }

    /// The stream of text with a byte after its first word that is not UTF-8.
    fn with_bad_byte(&self) -> Bytes {
        let (stream, word) = (self.text.stream(), &self.word.1);
        let at = stream.find(word).expect("the word stands in the stream as it is") + word.len();
        let (before, after) = stream.as_bytes().split_at(at);
        [before, b"\xFF", after].concat().into()
    }

    /// The stream of calls, all of which have the id of the first.
    fn with_one_id(&self) -> String {
        let ids: Vec<_> = self.good(&self.calls).message.calls().map(|call| call.id.clone()).collect();
        ids.iter().fold(self.calls.stream(), |stream, id| stream.replace(&**id, &ids[0]))
    }
}
