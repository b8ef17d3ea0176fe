//! Ids, as clients know them.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

/// Ids, as clients know them. Models number the calls of an answer as they like: two sub-agents may both have a call `c1`, and
/// so may two answers of one run.
#[derive(Debug, Default)]
pub(super) struct Ids {
    used: HashSet<String>,
    /// The newest id of each call, by its lane and its own id.
    calls: HashMap<(Option<String>, Arc<str>), String>,
}

impl Ids {
    /// This id, or one like it that nobody has.
    pub(super) fn fresh(&mut self, plain: &str) -> String {
        let mut id = plain.to_owned();
        let mut again = 2;
        while !self.used.insert(id.clone()) {
            id = format!("{plain}~{again}");
            again += 1;
        }
        id
    }

    /// The id of a call that begins.
    pub(super) fn begin_call(&mut self, lane: Option<&str>, call: &Arc<str>) -> String {
        let id = self.fresh(&plain(lane, call));
        self.calls.insert((lane.map(str::to_owned), call.clone()), id.clone());
        id
    }

    /// The id of a call that began here, or in an earlier story.
    pub(super) fn call(&self, lane: Option<&str>, call: &Arc<str>) -> String {
        let known = self.calls.get(&(lane.map(str::to_owned), call.clone()));
        known.cloned().unwrap_or_else(|| plain(lane, call))
    }
}

fn plain(lane: Option<&str>, call: &str) -> String {
    lane.map_or_else(|| call.to_owned(), |lane| format!("{lane}.{call}"))
}

/// A call's own id, of the id under which a client knows it: without what tells it from an earlier one.
pub(crate) fn own_id(known: &str) -> &str {
    match known.rsplit_once('~') {
        Some((own, again)) if !again.is_empty() && again.bytes().all(|c| c.is_ascii_digit()) => own,
        _ => known,
    }
}
