//! One of the answers that were asked for.

use agent_core::{Chunk, message::Origin};
use serde_json::value::RawValue;

use super::{fold::Fold, rest::Rest};
use crate::wire::{
    lenient::{Str, each},
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
    pub(super) content: Option<Rest>,
    pub(super) fold: Fold,
    /// Why it ended; empty until it has.
    pub(super) finish: String,
    pub(super) rest: Rest,
}

impl Candidate {
    pub(super) fn new(index: u64, origin: Origin, is_heard: bool) -> Self {
        Self { index, content: None, fold: Fold::new(origin, is_heard), finish: String::new(), rest: Rest::default() }
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
            let kept = self.content.get_or_insert_default();
            content.rest.iter().for_each(|(name, json)| kept.take(&name.0, json.get()));
            let push = |part| {
                self.fold.push(part, response, out);
                Ok(())
            };
            content.parts.map_or(Ok(()), |parts| each(parts, push))?;
        }
        if let Some(finish) = said.finish.as_ref().filter(|finish| !finish.is_empty()) {
            self.finish.clear();
            self.finish.push_str(&finish.0);
        }
        said.rest.iter().for_each(|(name, json)| self.rest.take(&name.0, json.get()));
        Ok(())
    }
}
