//! Entries as they are kept.

use std::sync::Arc;

use agent_core::{
    Error, ErrorKind, Result,
    journal::{Entry, EntryBody},
};

use crate::{
    blob::{Blob, join, split},
    depth::reads_back,
};

/// An entry without its place. Encoded by whoever appends it, so that the one that writes does nothing else.
pub(crate) struct Encoded {
    pub(crate) run: Arc<str>,
    pub(crate) time: u64,
    pub(crate) version: u16,
    /// JSON text, without what is in `blobs`.
    pub(crate) body: String,
    /// What is kept once for all who have it.
    pub(crate) blobs: Vec<Blob>,
    /// How many blobs there must be.
    pub(crate) parts: usize,
    /// What it says of its session.
    pub(crate) told: Option<Told>,
}

/// What an entry says of its session as a whole.
pub(crate) enum Told {
    /// A run of this agent began at the top.
    Run(Arc<str>),
    /// It has this title now.
    Title(String),
    /// It can be read from here.
    Anchor,
}

impl Told {
    fn of(body: &EntryBody) -> Option<Self> {
        match body {
            EntryBody::RunStarted { ids, .. } if ids.parent_run_id.is_none() => Some(Self::Run(ids.agent_id.clone())),
            EntryBody::Titled { title } => Some(Self::Title(title.clone())),
            EntryBody::Anchored { .. } => Some(Self::Anchor),
            _ => None,
        }
    }
}

/// What a batch says of its session.
#[derive(Default)]
pub(crate) struct Summary<'a> {
    /// The time of its first entry.
    pub(crate) first: u64,
    /// The newest time.
    pub(crate) newest: u64,
    pub(crate) runs: u64,
    pub(crate) agents: Vec<&'a str>,
    pub(crate) title: Option<&'a str>,
    /// Which of its entries is the newest anchor, from 1.
    pub(crate) anchor: Option<i64>,
}

impl<'a> Summary<'a> {
    pub(crate) fn of(entries: &'a [Encoded]) -> Self {
        let mut summary = Self { first: entries.first().map_or(0, |entry| entry.time), ..Self::default() };
        for (n, entry) in (1..).zip(entries) {
            summary.newest = summary.newest.max(entry.time);
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
    /// Strings of `blob_bytes` and more are taken out of the body.
    ///
    /// # Errors
    /// If the entry could not be read back: that is known now, while its run can still be told.
    pub(crate) fn new(entry: Entry, blob_bytes: usize) -> Result<Self> {
        let (told, body) = (Told::of(&entry.body), entry.body.to_json()?);
        let too_deep = |e| Error::new(ErrorKind::Store, "an entry is nested too deeply to be read back").with_source(e);
        reads_back(&body, EntryBody::from_json).map_err(too_deep)?;
        let (body, blobs) = split(body, blob_bytes);
        let parts = blobs.len();
        Ok(Self { run: entry.run, time: entry.time, version: entry.version, body, blobs, parts, told })
    }

    /// How much memory it holds, roughly.
    pub(crate) fn bytes(&self) -> usize {
        self.body.len() + self.blobs.iter().map(|blob| blob.text.len()).sum::<usize>() + size_of::<Self>()
    }

    /// The entry at `seq`.
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
            match Encoded::new(nested(levels), 4096) {
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
