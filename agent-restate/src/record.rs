//! What the journal of a run's invocation holds.

use std::{io, sync::Arc};

use agent_core::{
    Error, ErrorKind, Result,
    dispatch::Job,
    journal::{Entry, EntryBody, SessionInfo},
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::Outcome;

/// What became of a run since the batch before it: one recorded result of the handler's. Whatever the executor does at the same
/// time or in another order, the log of batches has one order, and every record names itself.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Batch {
    pub(crate) records: Vec<Record>,
    /// The entries that the run noted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) noted: Option<Noted>,
    /// Set if nothing goes on before a wish comes true.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) waits: bool,
    /// Set if it is to be looked whether somebody told the run something.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) looks: bool,
}

/// One thing that happened.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Record {
    /// The run began, with the agent of this fingerprint.
    Began { fingerprint: String },
    /// A step came to this.
    Kept { name: String, result: Stored },
    /// A step sleeps until then: milliseconds since 1970, UTC.
    Sleeps { name: String, until: u64 },
    /// A step waits for the answer to a question, which is a signal of this name.
    Asks { name: String, question: String, signal: String },
    /// The run stopped because it was told the pause of this number, and waits until it is to go on.
    Rests { name: String, pause: u32 },
    /// A step waits for the end of a run of another session, which a service of this name has; its own if none.
    Calls { name: String, service: Option<Arc<str>>, job: Box<Job> },
    /// Nobody waits for the end of that run any more.
    GivesUp { name: String },
    /// The time that a step sleeps is up.
    Due { name: String },
    /// The run ended.
    Ended { outcome: Box<RawValue> },
}

impl Record {
    /// True if somebody outside acts on it, who is to see then what the run noted before.
    pub(crate) fn is_seen(&self) -> bool {
        matches!(self, Self::Asks { .. } | Self::Rests { .. } | Self::Ended { .. })
    }
}

/// What a run of another session came to that was called.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Called {
    /// It ended.
    Ended(Outcome),
    /// It never ran, or was killed.
    Failed(String),
    /// The caller did not wait for its end.
    GivenUp,
}

/// Entries of the run, in their order.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Noted {
    pub(crate) count: u64,
    /// Set if they begin with an anchor: the session need not be read from further back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) anchor: Option<Anchoring>,
    /// What they say of the session without its content.
    #[serde(default)]
    pub(crate) info: SessionInfo,
    pub(crate) entries: Stored,
}

/// JSON in its place, or by its content elsewhere.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Stored {
    Here(Box<RawValue>),
    Blob(String),
}

/// The anchor that entries begin with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Anchoring {
    /// The number of the anchor from which it goes on; none if it stands for itself.
    pub(crate) base: Option<u64>,
}

impl Anchoring {
    /// The anchor that `entries` begin with. A run notes one before anything else, or none.
    pub(crate) fn of(entries: &[Entry]) -> Option<Self> {
        match &entries.first()?.body {
            EntryBody::Anchored { anchor } => Some(Self { base: anchor.base() }),
            _ => None,
        }
    }
}

/// How many bytes of JSON a value is.
pub(crate) fn size(value: &impl Serialize) -> usize {
    struct Count(usize);

    impl io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    let mut count = Count(0);
    // What is no JSON is refused where it is written.
    _ = serde_json::to_writer(&mut count, value);
    count.0
}

/// A value as JSON.
pub(crate) fn raw(value: &impl Serialize) -> Result<Box<RawValue>> {
    serde_json::value::to_raw_value(value)
        .map_err(|e| Error::new(ErrorKind::Store, "what a step gave is not JSON").with_source(e))
}

/// A value of JSON that was kept.
pub(crate) fn parsed<T: serde::de::DeserializeOwned>(raw: &RawValue) -> Result<T> {
    serde_json::from_str(raw.get()).map_err(|e| {
        Error::new(
            ErrorKind::Store,
            "what was kept of a step is not what this release writes: drive the run by the release that began it",
        )
        .with_source(e)
    })
}
