//! One of the answers that were asked for.

use std::fmt;

use agent_core::Origin;
use serde::{
    Deserialize, Deserializer,
    de::{SeqAccess, Visitor},
};
use serde_json::value::RawValue;

use super::{
    fold::{Fold, Heard},
    rest::Rest,
};
use crate::wire::{lenient::Str, open_struct::open_struct};

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
        parts: List<&'a RawValue> = "parts",
    }
}

/// A list, most often of one item.
#[derive(Debug)]
pub(super) struct List<T> {
    first: Option<T>,
    more: Vec<T>,
}

impl<T> Default for List<T> {
    fn default() -> Self {
        Self { first: None, more: Vec::new() }
    }
}

impl<T> IntoIterator for List<T> {
    type Item = T;
    type IntoIter = std::iter::Chain<std::option::IntoIter<T>, std::vec::IntoIter<T>>;

    fn into_iter(self) -> Self::IntoIter {
        self.first.into_iter().chain(self.more)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ListVisitor<T>(std::marker::PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for ListVisitor<T> {
            type Value = List<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
                let first = items.next_element()?;
                let mut more = Vec::new();
                while let Some(item) = items.next_element()? {
                    more.push(item);
                }
                Ok(List { first, more })
            }
        }

        deserializer.deserialize_seq(ListVisitor(std::marker::PhantomData))
    }
}

/// A candidate under way.
#[derive(Debug)]
pub(super) struct Candidate {
    pub(super) index: u64,
    /// There was a content, though perhaps one without parts.
    pub(super) spoke: bool,
    pub(super) fold: Fold,
    /// Why it ended; empty until it has.
    pub(super) finish: String,
    pub(super) rest: Rest,
}

impl Candidate {
    pub(super) fn new(index: u64, origin: Origin) -> Self {
        Self { index, spoke: false, fold: Fold::new(origin), finish: String::new(), rest: Rest::default() }
    }

    /// Adds a piece. `response` is the id of the response.
    pub(super) fn take(
        &mut self,
        said: &CandidateSaid<'_>,
        response: &str,
        heard: &mut Heard<'_>,
    ) -> serde_json::Result<()> {
        let content: ContentSaid<'_> =
            said.content.map_or(Ok(ContentSaid::default()), |c| serde_json::from_str(c.get()))?;
        self.spoke |= said.content.is_some();
        for part in content.parts.into_iter().flatten() {
            self.fold.push(part, response, heard);
        }
        if let Some(finish) = said.finish.as_ref().filter(|finish| !finish.is_empty()) {
            self.finish.clear();
            self.finish.push_str(&finish.0);
        }
        said.rest.iter().for_each(|(name, json)| self.rest.take(&name.0, json.get()));
        Ok(())
    }
}
