//! Fields that are kept as they came.

use serde_json::{Map, Value};

use crate::wire::merge::merge;

/// What a stream says piece by piece; of anything else the last word holds.
const IN_PIECES: &str = "logprobsResult";

/// Fields of an answer that no message holds, as JSON.
#[derive(Debug, Default)]
pub(super) struct Rest(Vec<(String, String)>);

impl Rest {
    /// Keeps a field. One that says nothing does not take the place of one that did.
    pub(super) fn take(&mut self, name: &str, json: &str) {
        if matches!(json, "null" | "{}" | "[]") {
            return;
        }
        match self.0.iter_mut().find(|(known, _)| known == name && name != IN_PIECES) {
            Some((_, known)) => {
                known.clear();
                known.push_str(json);
            }
            None => self.0.push((name.to_owned(), json.to_owned())),
        }
    }

    /// The JSON of a field.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, json)| json.as_str())
    }

    /// The fields, in the order in which they came.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, json)| (name.as_str(), json.as_str()))
    }

    /// Adds the fields to `details`.
    pub(super) fn add_to(self, details: &mut Map<String, Value>) {
        for (name, json) in self.0 {
            let value = serde_json::from_str(&json).unwrap_or_default();
            match details.get_mut(&name) {
                Some(known) => merge(known, value),
                None => drop(details.insert(name, value)),
            }
        }
    }
}
