//! Entries as they are kept.

use std::sync::Arc;

use agent_core::{Entry, EntryBody, Error, ErrorKind, Result};

/// An entry without its place. Encoded by whoever appends it, so that the one thread that writes does nothing else.
pub(super) struct Encoded {
    pub(super) run: Arc<str>,
    pub(super) time: u64,
    pub(super) version: u16,
    pub(super) body: String,
}

/// Text that is nested deeper than this may be refused by the parser, which guards its stack.
const SAFE_DEPTH: usize = 120;

impl Encoded {
    /// # Errors
    /// If the entry could not be read back: that is known now, while its run can still be told.
    pub(super) fn new(entry: Entry) -> Result<Self> {
        let body = entry.body.to_json()?;
        if depth(&body) > SAFE_DEPTH {
            let too_deep =
                |e| Error::new(ErrorKind::Store, "an entry is nested too deeply to be read back").with_source(e);
            EntryBody::from_json(&body).map_err(too_deep)?;
        }
        Ok(Self { run: entry.run, time: entry.time, version: entry.version, body })
    }

    /// How much memory it holds, roughly.
    pub(super) fn bytes(&self) -> usize {
        self.body.len() + size_of::<Self>()
    }

    /// The entry at `seq`.
    pub(super) fn decode(self, seq: u64) -> Result<Entry> {
        let body = EntryBody::from_json(&self.body).map_err(|e| e.with_context("seq", seq.to_string()))?;
        let mut entry = Entry::new(self.run, self.time, body);
        (entry.seq, entry.version) = (seq, self.version);
        Ok(entry)
    }
}

/// How deep arrays and objects are nested in JSON text.
fn depth(json: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    let (mut in_string, mut escaped) = (false, false);
    for byte in json.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'[' | b'{' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
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
    fn depth_counts_brackets_outside_of_strings() {
        assert_eq!(depth(r#"{"a[[":[{}],"b":"{\"["}"#), 3);
        assert_eq!(depth("1"), 0);
    }

    #[test]
    fn every_entry_that_is_taken_can_be_read_back_however_deep_it_is() {
        let mut refused = 0;
        for levels in 100..140 {
            match Encoded::new(nested(levels)) {
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
