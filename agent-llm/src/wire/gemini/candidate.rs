//! One of the answers that were asked for, and what is said beside its parts.

use agent_core::{Chunk, message::Origin};
use serde_json::{Map, Value, value::RawValue};

use super::fold::Fold;
use crate::wire::{
    lenient::{Str, each},
    merge::merge,
    open_struct::open_struct,
};

open_struct! {
    /// A candidate, or a piece of one.
    CandidateSaid {
        index: u64 = "index",
        content: &'a RawValue = "content",
        finish: Str<'a> = "finishReason",
    }
}

open_struct! {
    /// A content. A model that says nothing has no parts.
    ContentSaid {
        parts: &'a RawValue = "parts",
    }
}

/// A candidate under way.
#[derive(Debug)]
pub(super) struct Candidate {
    pub(super) index: u64,
    /// What the content holds besides parts; none as long as there was no content.
    pub(super) content: Option<Map<String, Value>>,
    pub(super) fold: Fold,
    /// Why it ended; empty until it has.
    pub(super) finish: String,
    pub(super) rest: Map<String, Value>,
}

impl Candidate {
    pub(super) fn new(index: u64, origin: Origin, is_heard: bool) -> Self {
        Self { index, content: None, fold: Fold::new(origin, is_heard), finish: String::new(), rest: Map::new() }
    }

    /// Adds a piece. `response` is the id of the response.
    pub(super) fn take(
        &mut self,
        said: &CandidateSaid<'_>,
        response: &str,
        out: &mut Vec<Chunk>,
    ) -> serde_json::Result<()> {
        if let Some(content) = said.content {
            let content: ContentSaid<'_> = serde_json::from_str(content.get())?;
            keep(self.content.get_or_insert_default(), &content.rest);
            let push = |part| {
                self.fold.push(part, response, out);
                Ok(())
            };
            content.parts.map_or(Ok(()), |parts| each(parts, push))?;
        }
        if let Some(finish) = said.finish.as_ref().filter(|finish| !finish.is_empty()) {
            self.finish = finish.0.to_string();
        }
        keep(&mut self.rest, &said.rest);
        Ok(())
    }
}

/// What a stream says piece by piece; of anything else the last word holds.
const IN_PIECES: &str = "logprobsResult";

/// Keeps fields that no message holds. One that says nothing does not take the place of one that did.
pub(super) fn keep(known: &mut Map<String, Value>, fields: &[(Str<'_>, &RawValue)]) {
    for (name, json) in fields.iter().filter(|(_, json)| !matches!(json.get(), "{}" | "[]")) {
        match (known.get_mut(&*name.0), serde_json::from_str(json.get())) {
            (_, Err(_)) => {} // a number that no number is
            (Some(known), Ok(more)) if name.0 == IN_PIECES => merge(known, more),
            (_, Ok(value)) => drop(known.insert(name.0.to_string(), value)),
        }
    }
}
