//! State of a session's virtual object.
//!
//! The key `open` holds the active run, `head` the summary of the session, and `piece/N` the
//! entries that one batch of a run recorded: each value is written once, and no value grows with
//! the conversation.

use std::{collections::BTreeMap, sync::Arc};

use agent_core::{
    Result,
    journal::{Entry, SessionInfo},
};
use restate_sdk::{
    endpoint::ContextInternal,
    errors::{HandlerResult, TerminalError},
    serde::Json,
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::value::RawValue;

use crate::{
    blobs::Blobs,
    record::{Noted, Stored, parsed, raw},
};

/// Summary of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Head {
    /// Sequence number of the session's newest entry.
    pub(crate) newest: u64,
    /// Number of pieces; they are numbered from 1.
    pub(crate) pieces: u64,
    /// Positions of the snapshots, from the newest full one on: each of the others extends the one
    /// before it.
    #[serde(default)]
    pub(crate) anchors: Vec<AnchorPlace>,
    /// Metadata of the session without its content.
    #[serde(default)]
    pub(crate) info: SessionInfo,
}

/// Position of a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AnchorPlace {
    /// Number of the piece that begins with it.
    piece: u64,
    /// Sequence number of its entry.
    pub(crate) seq: u64,
}

/// Entries that one batch recorded.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Piece {
    /// Sequence number of the first entry.
    pub(crate) first: u64,
    pub(crate) entries: Stored,
}

/// Active run of a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Open {
    pub(crate) run: Arc<str>,
    pub(crate) invocation: String,
    /// Waiting steps by the id of their question.
    #[serde(default)]
    pub(crate) asked: BTreeMap<String, Asked>,
}

/// Step that waits for an answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Asked {
    /// Name of the step.
    pub(crate) name: String,
    /// Signal that delivers the answer: the same one when the question is asked again after a
    /// rejected answer. Answers that arrive meanwhile are consumed in order.
    pub(crate) signal: String,
}

/// One page of the requested entries.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Page<E = Box<RawValue>> {
    Entries {
        entries: Vec<E>,
        /// True if there are more entries.
        more: bool,
    },
    /// Next piece, by the name of its blob: its entries are too large for a message.
    Elsewhere(Piece),
}

/// Key of a paused run in place of a question id.
pub(crate) const TO_GO_ON: &str = "";

/// Bytes of entries per page.
const PAGE: usize = 8 << 20;

const OPEN: &str = "open";
const HEAD: &str = "head";

/// Reads a value of the object's state.
async fn value<T: DeserializeOwned + 'static>(ctx: &ContextInternal, key: &str) -> HandlerResult<Option<T>> {
    Ok(ctx.get::<Json<T>>(key).await?.map(Json::into_inner))
}

pub(crate) async fn open(ctx: &ContextInternal) -> HandlerResult<Option<Open>> {
    value(ctx, OPEN).await
}

pub(crate) fn set_open(ctx: &ContextInternal, open: Option<&Open>) {
    match open {
        Some(open) => ctx.set(OPEN, Json(open.clone())),
        None => ctx.clear(OPEN),
    }
}

pub(crate) async fn head(ctx: &ContextInternal) -> HandlerResult<Head> {
    Ok(value(ctx, HEAD).await?.unwrap_or_default())
}

/// Writes a piece and the updated summary of the session.
pub(crate) fn append(ctx: &ContextInternal, head: &mut Head, noted: Noted) {
    let first = head.extend(&noted);
    ctx.set(&key(head.pieces), Json(Piece { first, entries: noted.entries }));
    ctx.set(HEAD, Json(head.clone()));
}

/// Returns the entries from the newest snapshot on, after the entries needed to read it: the
/// snapshots that it extends, and the entry before it, which identifies the position in the
/// session.
pub(crate) async fn since_anchor(ctx: &ContextInternal, head: &Head, blobs: &Blobs) -> HandlerResult<Vec<Arc<Entry>>> {
    let mut all = Vec::new();
    // If the blob store is unavailable, Restate retries.
    for (number, needs) in head.needed() {
        let entries = piece(ctx, number).await?.read(blobs).await?;
        match needs {
            Needs::First => all.extend(entries.into_iter().next()),
            Needs::Last => all.extend(entries.into_iter().next_back()),
            Needs::All => all.extend(entries),
        }
    }
    Ok(all)
}

/// Part of a piece that a run needs to restore the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Needs {
    /// The snapshot at the beginning of the piece.
    First,
    Last,
    All,
}

impl Head {
    /// Adds a piece as the newest one. Returns the sequence number of its first entry.
    fn extend(&mut self, noted: &Noted) -> u64 {
        let first = self.newest + 1;
        self.pieces += 1;
        self.newest += noted.count;
        self.info.extend(&noted.info);
        let place = AnchorPlace { piece: self.pieces, seq: first };
        match noted.anchor.map(|anchor| anchor.base) {
            Some(None) => self.anchors = vec![place],
            Some(base) if base == self.anchors.last().map(|newest| newest.seq) => self.anchors.push(place),
            // A snapshot that extends any other one could not be read.
            Some(_) | None => {}
        }
        first
    }

    /// Returns the pieces that a run needs, in order. A piece may occur twice, for its first entry
    /// and its last.
    fn needed(&self) -> Vec<(u64, Needs)> {
        let Some((newest, earlier)) = self.anchors.split_last() else {
            return (1..=self.pieces).map(|number| (number, Needs::All)).collect();
        };
        let anchors = earlier.iter().map(|anchor| (anchor.piece, Needs::First));
        let before = (newest.piece > 1).then(|| (newest.piece - 1, Needs::Last));
        anchors.chain(before).chain((newest.piece..=self.pieces).map(|number| (number, Needs::All))).collect()
    }
}

/// Returns at most `limit` entries after the sequence number `after`, as many as fit in one
/// message.
pub(crate) async fn read(ctx: &ContextInternal, after: u64, limit: usize, blobs: &Blobs) -> HandlerResult<Page> {
    let head = head(ctx).await?;
    if after >= head.newest {
        return Ok(Page::Entries { entries: Vec::new(), more: false });
    }
    // Find the last piece whose first entry is not above the requested one. Readers that follow a
    // session read its end: search backwards with doubling steps first.
    let (mut low, mut high, mut step) = (1, head.pieces, 1);
    while low < high {
        let middle = if step > 0 { high.saturating_sub(step).max(low) + 1 } else { low + (high - low).div_ceil(2) };
        let middle = middle.min(high);
        match piece(ctx, middle).await?.first <= after + 1 {
            true => (low, step) = (middle, 0),
            false => (high, step) = (middle - 1, step * 2),
        }
    }
    let (mut entries, mut bytes) = (Vec::new(), 0);
    for number in low..=head.pieces {
        let piece = piece(ctx, number).await?;
        for entry in piece.read(blobs).await?.into_iter().filter(|entry| entry.seq > after) {
            let json = raw(&entry)?;
            bytes += json.get().len();
            if entries.is_empty() && bytes > Blobs::MOST {
                return Ok(Page::Elsewhere(piece));
            }
            if entries.len() == limit || !entries.is_empty() && bytes > PAGE {
                return Ok(Page::Entries { entries, more: true });
            }
            entries.push(json);
        }
        if entries.len() == limit {
            break;
        }
    }
    Ok(Page::Entries { entries, more: false })
}

async fn piece(ctx: &ContextInternal, number: u64) -> HandlerResult<Piece> {
    let piece = value(ctx, &key(number)).await?;
    piece.ok_or_else(|| TerminalError::new(format!("piece {number} of the session is missing")).into())
}

impl Piece {
    /// Returns the entries with their sequence numbers.
    pub(crate) async fn read(&self, blobs: &Blobs) -> Result<Vec<Arc<Entry>>> {
        let entries = entries_of(&self.entries, blobs).await?;
        Ok((self.first..).zip(entries).map(|(seq, entry)| numbered(seq, entry)).collect())
    }
}

/// Returns the entries of a batch, without their sequence numbers.
pub(crate) async fn entries_of(stored: &Stored, blobs: &Blobs) -> Result<Vec<Entry>> {
    parsed(&blobs.fetch(stored).await?)
}

fn key(number: u64) -> String {
    format!("piece/{number:09}")
}

/// Sets the sequence number of an entry.
pub(crate) fn numbered(seq: u64, mut entry: Entry) -> Arc<Entry> {
    entry.seq = seq;
    Arc::new(entry)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Anchoring;

    fn noted(count: u64, anchor: Option<Option<u64>>) -> Noted {
        let entries = Stored::Here(RawValue::NULL.to_owned());
        Noted { count, anchor: anchor.map(|base| Anchoring { base }), info: SessionInfo::default(), entries }
    }

    #[test]
    fn a_session_is_read_from_its_newest_anchor_with_those_that_this_one_goes_on_from() {
        let mut head = Head::default();
        for piece in [noted(900, None), noted(100, None), noted(1, Some(None)), noted(9, None), noted(990, None)] {
            head.extend(&piece);
        }
        assert_eq!(head.needed(), [(2, Needs::Last), (3, Needs::All), (4, Needs::All), (5, Needs::All)]);
        assert_eq!(head.extend(&noted(50, Some(Some(1_001)))), 2_001);
        head.extend(&noted(7, None));
        assert_eq!(head.needed(), [(3, Needs::First), (5, Needs::Last), (6, Needs::All), (7, Needs::All)]);
    }

    #[test]
    fn an_anchor_that_goes_on_from_one_that_nobody_finds_is_not_read_from() {
        let mut head = Head::default();
        for piece in [noted(1_000, None), noted(9, Some(Some(500)))] {
            head.extend(&piece);
        }
        assert_eq!(head.needed(), [(1, Needs::All), (2, Needs::All)]);
    }
}
