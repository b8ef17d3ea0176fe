//! What the author of a codec gives the suite: [`Samples`].

use agent_core::ErrorKind;
use serde_json::Value;

/// Answers, errors and requests of one wire, for the [suite](crate::conformance). The more of what the wire can say they
/// hold, the more is checked.
#[derive(Clone, Debug, Default)]
pub struct Samples {
    pub(super) answers: Vec<Answer>,
    pub(super) refusals: Vec<Refusal>,
    pub(super) interruptions: Vec<Interruption>,
    pub(super) requests: Vec<String>,
}

/// One answer, in both ways in which it can come.
#[derive(Clone, Debug)]
pub struct Answer {
    pub(super) name: String,
    pub(super) whole: String,
    pub(super) turn: String,
    pub(super) events: Vec<String>,
}

/// An answer to a request that was refused.
#[derive(Clone, Debug)]
pub(super) struct Refusal {
    pub(super) status: u16,
    pub(super) body: String,
    pub(super) kind: ErrorKind,
}

/// A stream of which the last event is an error.
#[derive(Clone, Debug)]
pub(super) struct Interruption {
    pub(super) events: Vec<String>,
    pub(super) kind: ErrorKind,
}

impl Samples {
    /// No samples.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an answer. Wanted are at least one of text alone and one with two calls.
    #[must_use]
    pub fn answer(mut self, answer: Answer) -> Self {
        self.answers.push(answer);
        self
    }

    /// Adds the body of a refusal with this status, and the class of error that it is.
    #[must_use]
    pub fn refusal(mut self, status: u16, body: impl Into<String>, kind: ErrorKind) -> Self {
        self.refusals.push(Refusal { status, body: body.into(), kind });
        self
    }

    /// Adds a stream whose last event is an error, and the class of error that it is.
    #[must_use]
    pub fn interruption<E: Into<String>>(mut self, events: impl IntoIterator<Item = E>, kind: ErrorKind) -> Self {
        let events = events.into_iter().map(Into::into).collect();
        self.interruptions.push(Interruption { events, kind });
        self
    }

    /// Adds the body of a request as other clients write it.
    #[must_use]
    pub fn request(mut self, body: impl Into<String>) -> Self {
        self.requests.push(body.into());
        self
    }

    /// The answers.
    pub fn answers(&self) -> &[Answer] {
        &self.answers
    }

    /// The events of the streams that end in an error, with the class of that error.
    pub fn interruptions(&self) -> impl Iterator<Item = (&[String], ErrorKind)> {
        self.interruptions.iter().map(|interruption| (&interruption.events[..], interruption.kind))
    }

    /// The bodies of requests.
    pub fn requests(&self) -> impl Iterator<Item = &str> {
        self.requests.iter().map(String::as_str)
    }

    /// The bodies of the refusals, with their status and the class of error that each is.
    pub fn refusals(&self) -> impl Iterator<Item = (u16, &str, ErrorKind)> {
        self.refusals.iter().map(|refusal| (refusal.status, refusal.body.as_str(), refusal.kind))
    }
}

impl Answer {
    /// An answer that comes whole in the body `whole`. `turn` is the JSON in it that goes back to the provider: one
    /// object, or a list whose items go back one after another; written just as in the body.
    pub fn new(name: impl Into<String>, whole: impl Into<String>, turn: impl Into<String>) -> Self {
        Self { name: name.into(), whole: whole.into(), turn: turn.into(), events: Vec::new() }
    }

    /// The data of the events by which the same answer comes as a stream.
    #[must_use]
    pub fn streamed<E: Into<String>>(mut self, events: impl IntoIterator<Item = E>) -> Self {
        self.events = events.into_iter().map(Into::into).collect();
        self
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The body of the whole answer.
    pub fn whole(&self) -> &str {
        &self.whole
    }

    /// The data of its events; empty if it does not come as a stream.
    pub fn events(&self) -> &[String] {
        &self.events
    }

    /// The events as they travel.
    pub fn stream(&self) -> String {
        event_stream(&self.events)
    }

    /// Where the turn stands in the whole body, as a JSON pointer.
    pub(super) fn place_of_turn(&self) -> Option<String> {
        let turn: Value = serde_json::from_str(&self.turn).ok()?;
        let whole: Value = serde_json::from_str(&self.whole).ok()?;
        place(&whole, &turn)
    }
}

/// The events with these data as they travel: server-sent events.
pub fn event_stream<E: AsRef<str>>(events: impl IntoIterator<Item = E>) -> String {
    events.into_iter().map(|data| format!("data: {}\n\n", data.as_ref())).collect()
}

/// Where `wanted` stands in `json`, as a JSON pointer.
fn place(json: &Value, wanted: &Value) -> Option<String> {
    if json == wanted {
        return Some(String::new());
    }
    let below = |(name, value): (String, &Value)| Some(format!("/{name}{}", place(value, wanted)?));
    match json {
        Value::Object(fields) => fields.iter().map(|(name, value)| (name.clone(), value)).find_map(below),
        Value::Array(items) => items.iter().enumerate().map(|(at, item)| (at.to_string(), item)).find_map(below),
        _ => None,
    }
}
