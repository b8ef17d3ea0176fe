//! [`Samples`]: input of the suite, provided by the author of a codec.

use agent_core::ErrorKind;
use serde_json::Value;

/// Answers, errors and requests of one wire, for the [suite](crate::conformance). The more of the
/// wire's features they use, the more is checked.
#[derive(Clone, Debug, Default)]
pub struct Samples {
    pub(super) answers: Vec<Answer>,
    pub(super) refusals: Vec<Refusal>,
    pub(super) interruptions: Vec<Interruption>,
    pub(super) requests: Vec<String>,
}

/// One answer, in both forms.
#[derive(Clone, Debug)]
pub struct Answer {
    pub(super) name: String,
    pub(super) whole: String,
    pub(super) turn: String,
    pub(super) events: Vec<String>,
}

/// Response to a rejected request.
#[derive(Clone, Debug)]
pub(super) struct Refusal {
    pub(super) status: u16,
    pub(super) body: String,
    pub(super) kind: ErrorKind,
}

/// A stream whose last event is an error.
#[derive(Clone, Debug)]
pub(super) struct Interruption {
    pub(super) events: Vec<String>,
    pub(super) kind: ErrorKind,
}

impl Samples {
    /// Creates an empty set of samples.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an answer. Provide at least one of text alone and one with two calls.
    #[must_use]
    pub fn answer(mut self, answer: Answer) -> Self {
        self.answers.push(answer);
        self
    }

    /// Adds the body of a refusal with this status, and the expected error kind.
    #[must_use]
    pub fn refusal(mut self, status: u16, body: impl Into<String>, kind: ErrorKind) -> Self {
        self.refusals.push(Refusal { status, body: body.into(), kind });
        self
    }

    /// Adds a stream whose last event is an error, and the expected error kind.
    #[must_use]
    pub fn interruption<E: Into<String>>(mut self, events: impl IntoIterator<Item = E>, kind: ErrorKind) -> Self {
        let events = events.into_iter().map(Into::into).collect();
        self.interruptions.push(Interruption { events, kind });
        self
    }

    /// Adds a request body as other clients write it.
    #[must_use]
    pub fn request(mut self, body: impl Into<String>) -> Self {
        self.requests.push(body.into());
        self
    }

    /// Returns the answers.
    pub fn answers(&self) -> &[Answer] {
        &self.answers
    }

    /// Returns the events of the streams that end in an error, with the expected error kind.
    pub fn interruptions(&self) -> impl Iterator<Item = (&[String], ErrorKind)> {
        self.interruptions.iter().map(|interruption| (&interruption.events[..], interruption.kind))
    }

    /// Returns the request bodies.
    pub fn requests(&self) -> impl Iterator<Item = &str> {
        self.requests.iter().map(String::as_str)
    }

    /// Returns the refusals: status, body and expected error kind.
    pub fn refusals(&self) -> impl Iterator<Item = (u16, &str, ErrorKind)> {
        self.refusals.iter().map(|refusal| (refusal.status, refusal.body.as_str(), refusal.kind))
    }
}

impl Answer {
    /// Creates an answer with the complete body `whole`. `turn` is the JSON in it that is sent back
    /// to the provider: one object, or a list whose items are sent back one after another; spelled
    /// exactly as in the body.
    pub fn new(name: impl Into<String>, whole: impl Into<String>, turn: impl Into<String>) -> Self {
        Self { name: name.into(), whole: whole.into(), turn: turn.into(), events: Vec::new() }
    }

    /// Sets the event data of the same answer as a stream.
    #[must_use]
    pub fn streamed<E: Into<String>>(mut self, events: impl IntoIterator<Item = E>) -> Self {
        self.events = events.into_iter().map(Into::into).collect();
        self
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the body of the whole answer.
    pub fn whole(&self) -> &str {
        &self.whole
    }

    /// Returns the data of its events; empty if there is no streamed form.
    pub fn events(&self) -> &[String] {
        &self.events
    }

    /// Returns the events as bytes on the wire.
    pub fn stream(&self) -> String {
        event_stream(&self.events)
    }

    /// Returns the position of the turn in the whole body, as a JSON Pointer.
    pub(super) fn place_of_turn(&self) -> Option<String> {
        let turn: Value = serde_json::from_str(&self.turn).ok()?;
        let whole: Value = serde_json::from_str(&self.whole).ok()?;
        place(&whole, &turn)
    }
}

/// Encodes event data as server-sent events.
pub fn event_stream<E: AsRef<str>>(events: impl IntoIterator<Item = E>) -> String {
    events.into_iter().map(|data| format!("data: {}\n\n", data.as_ref())).collect()
}

/// Returns the position of `wanted` in `json`, as a JSON Pointer.
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
