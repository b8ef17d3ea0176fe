//! Records of a run's journal.

use std::{io, sync::Arc};

use agent_core::{
    Error, ErrorKind, Result,
    journal::{Entry, EntryBody, SessionInfo},
};
use agent_dispatch::Job;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::Outcome;

/// Everything that happened in a run since the previous batch: one recorded result of the handler.
/// The executor may run steps concurrently and in any order; the log of batches is totally ordered,
/// and every record is named.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Batch {
    pub(crate) records: Vec<Record>,
    /// Entries that the run recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) noted: Option<Noted>,
    /// Set if the run is suspended until a pending command completes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) waits: bool,
    /// Set if the handler must poll for signals to the run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) looks: bool,
}

/// One event of a run.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Record {
    /// The run began, with the agent of this fingerprint.
    Began { fingerprint: String },
    /// A step completed with this result.
    Kept { name: String, result: Stored },
    /// A step sleeps until this time: milliseconds since 1970, UTC.
    Sleeps { name: String, until: u64 },
    /// A step waits for the answer to a question, which the signal of this name delivers.
    Asks { name: String, question: String, signal: String },
    /// The run stopped at the pause of this number and waits to be resumed.
    Rests { name: String, pause: u32 },
    /// A step waits for the end of a run of another session, in the service of this name; the run's
    /// own service if none.
    Calls { name: String, service: Option<Arc<str>>, job: Box<Job> },
    /// The step no longer waits for this command.
    GivesUp { name: String },
    /// The time of a sleeping step has come.
    Due { name: String },
    /// The run ended.
    Ended { outcome: Box<RawValue> },
}

impl Record {
    /// True if the record is visible outside, so that everything the run recorded before must be
    /// written first.
    pub(crate) fn is_seen(&self) -> bool {
        matches!(self, Self::Asks { .. } | Self::Rests { .. } | Self::Ended { .. })
    }
}

/// Result of a call to a run of another session.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Called {
    /// The called run ended.
    Ended(Outcome),
    /// The called run never began, or was killed.
    Failed(String),
    /// The caller stopped waiting.
    GivenUp,
}

/// Entries of the run, in order.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Noted {
    pub(crate) count: u64,
    /// Set if the entries begin with a snapshot: readers need nothing from before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) anchor: Option<Anchoring>,
    /// Metadata of the session that these entries contribute.
    #[serde(default)]
    pub(crate) info: SessionInfo,
    pub(crate) entries: Stored,
}

/// JSON inline, or the name of the blob that holds it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Stored {
    Here(Box<RawValue>),
    Blob(String),
}

/// Snapshot at the beginning of a batch of entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Anchoring {
    /// Sequence number of the snapshot that this one extends; none for a full snapshot.
    pub(crate) base: Option<u64>,
}

impl Anchoring {
    /// Returns the snapshot at the beginning of `entries`. A run records at most one, before
    /// anything else.
    pub(crate) fn of(entries: &[Entry]) -> Option<Self> {
        match &entries.first()?.body {
            EntryBody::Anchored { anchor } => Some(Self { base: anchor.base() }),
            _ => None,
        }
    }
}

/// Returns the size of a value in bytes of JSON.
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
    // A value that cannot be encoded is rejected where it is written.
    _ = serde_json::to_writer(&mut count, value);
    count.0
}

/// Encodes a value as JSON.
pub(crate) fn raw(value: &impl Serialize) -> Result<Box<RawValue>> {
    serde_json::value::to_raw_value(value)
        .map_err(|e| Error::new(ErrorKind::Store, "the result of a step cannot be encoded as JSON").with_source(e))
}

/// Decodes recorded JSON.
pub(crate) fn parsed<T: serde::de::DeserializeOwned>(raw: &RawValue) -> Result<T> {
    serde_json::from_str(raw.get()).map_err(|e| {
        Error::new(
            ErrorKind::Store,
            "cannot decode the recorded result of a step: resume the run with the release that began it",
        )
        .with_source(e)
    })
}
