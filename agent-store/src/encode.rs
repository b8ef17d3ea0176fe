//! Encoded form of entries.

use std::sync::Arc;

use agent_core::{
    Error, ErrorKind, Result,
    journal::{Entry, EntryBody},
};

use crate::{
    blob::{Blob, join, split},
    depth::reads_back,
    project::{Change, Tracked},
};

/// An entry without its sequence number. Encoded by the appending task, so that the writer thread
/// only writes.
pub(crate) struct Encoded {
    pub(crate) run: Arc<str>,
    pub(crate) time: u64,
    pub(crate) version: u16,
    /// JSON text, without the strings in `blobs`.
    pub(crate) body: String,
    /// Large strings, stored once by content.
    pub(crate) blobs: Vec<Blob>,
    /// Number of blobs that the entry must have.
    pub(crate) parts: usize,
    /// Session metadata that the entry changes.
    pub(crate) told: Option<Told>,
    /// Changes of the projection.
    pub(crate) changes: Vec<Change>,
}

/// Session metadata that an entry changes.
pub(crate) enum Told {
    /// A top-level run of this agent began.
    Run(Arc<str>),
    /// The session has this title now.
    Title(String),
    /// The entry is a snapshot, from which the session can be read.
    Anchor,
}

impl Told {
    pub(crate) fn of(body: &EntryBody) -> Option<Self> {
        match body {
            EntryBody::RunStarted { ids, .. } if ids.parent_run_id.is_none() => Some(Self::Run(ids.agent_id.clone())),
            EntryBody::Titled { title } => Some(Self::Title(title.clone())),
            EntryBody::Anchored { .. } => Some(Self::Anchor),
            _ => None,
        }
    }
}

/// Session metadata that a batch changes.
#[derive(Default)]
pub(crate) struct Summary<'a> {
    /// Time of the first entry.
    pub(crate) first: u64,
    /// Time of the newest entry.
    pub(crate) newest: u64,
    pub(crate) runs: u64,
    pub(crate) agents: Vec<&'a str>,
    pub(crate) title: Option<&'a str>,
    /// Position of the newest snapshot within the batch, from 1.
    pub(crate) anchor: Option<i64>,
    /// Time of the newest entry that makes the session active, or 0.
    pub(crate) active: u64,
}

impl<'a> Summary<'a> {
    pub(crate) fn of(entries: &'a [Encoded]) -> Self {
        let mut summary = Self { first: entries.first().map_or(0, |entry| entry.time), ..Self::default() };
        for (n, entry) in (1..).zip(entries) {
            summary.newest = summary.newest.max(entry.time);
            let is_active = entry.told.is_some() && !matches!(entry.told, Some(Told::Anchor));
            if is_active || entry.changes.iter().any(Change::is_activity) {
                summary.active = summary.active.max(entry.time);
            }
            match &entry.told {
                Some(Told::Run(agent)) => {
                    summary.runs += 1;
                    if !summary.agents.contains(&&**agent) {
                        summary.agents.push(agent);
                    }
                }
                Some(Told::Title(title)) => summary.title = Some(title),
                Some(Told::Anchor) => summary.anchor = Some(n),
                None => {}
            }
        }
        summary
    }
}

impl Encoded {
    /// Encodes an entry; strings of at least `blob_bytes` are moved out of the body.
    ///
    /// # Errors
    /// [`ErrorKind::Store`] if the entry could not be read back. Checked here, while its run can
    /// still be notified.
    pub(crate) fn new(entry: Entry, blob_bytes: usize, tracked: &mut Tracked) -> Result<Self> {
        let (told, body) = (Told::of(&entry.body), entry.body.to_json()?);
        let changes = Change::of(&entry.run, &entry.body, tracked);
        let too_deep = |e| Error::new(ErrorKind::Store, "an entry is nested too deeply to be read back").with_source(e);
        reads_back(&body, EntryBody::from_json).map_err(too_deep)?;
        let (body, blobs) = split(body, blob_bytes);
        let parts = blobs.len();
        Ok(Self { run: entry.run, time: entry.time, version: entry.version, body, blobs, parts, told, changes })
    }

    /// Returns the approximate memory usage in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let asked = |change: &Change| if let Change::Asked { body, .. } = change { body.len() } else { 0 };
        let changes = self.changes.iter().map(asked).sum::<usize>();
        changes + self.body.len() + self.blobs.iter().map(|blob| blob.text.len()).sum::<usize>() + size_of::<Self>()
    }

    /// Decodes the entry at `seq`.
    pub(crate) fn decode(self, seq: u64) -> Result<Entry> {
        let body = match self.blobs.len() == self.parts {
            true => join(self.body, self.blobs.iter().map(|blob| (blob.at, &*blob.text))),
            false => Err(Error::new(ErrorKind::Store, "a large string of an entry is missing: the store is damaged")),
        };
        let body = body.and_then(|body| EntryBody::from_json_of(self.version, &body));
        let mut entry = Entry::new(self.run, self.time, body.map_err(|e| e.with_context("seq", seq.to_string()))?);
        (entry.seq, entry.version) = (seq, self.version);
        Ok(entry)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn nested(levels: usize) -> Entry {
        let value = (0..levels).fold(json!("[{\"\\"), |inner, _| Value::Array(vec![inner]));
        Entry::new("run".into(), 0, EntryBody::Decided { name: "[[[".into(), value, beginning: false })
    }

    #[test]
    fn every_entry_that_is_taken_can_be_read_back_however_deep_it_is() {
        let mut refused = 0;
        for levels in 100..140 {
            match Encoded::new(nested(levels), 4096, &mut Tracked::default()) {
                Ok(encoded) => assert_eq!(encoded.decode(0).expect("reads back"), nested(levels)),
                Err(e) => {
                    refused += 1;
                    assert_eq!(e.kind(), ErrorKind::Store);
                }
            }
        }
        assert!((1..39).contains(&refused), "{refused} of 40 were refused");
    }
}
