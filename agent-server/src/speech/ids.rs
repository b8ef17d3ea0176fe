//! Public ids of messages and calls.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

/// Allocator of public ids. Models choose the ids of their calls freely: two sub-agents may both
/// have a call `c1`, and so may two answers of one run.
#[derive(Debug, Default)]
pub(super) struct Ids {
    used: HashSet<String>,
    /// Newest public id of each call, by lane and original id.
    calls: HashMap<(Option<String>, Arc<str>), String>,
}

impl Ids {
    /// Returns this id, or a variant that is not in use.
    pub(super) fn fresh(&mut self, plain: &str) -> String {
        let mut id = plain.to_owned();
        let mut again = 2;
        while !self.used.insert(id.clone()) {
            id = format!("{plain}~{again}");
            again += 1;
        }
        id
    }

    /// Returns the public id of a new call.
    pub(super) fn begin_call(&mut self, lane: Option<&str>, call: &Arc<str>) -> String {
        let id = self.fresh(&plain(lane, call));
        self.calls.insert((lane.map(str::to_owned), call.clone()), id.clone());
        id
    }

    /// Returns the public id of a call that began here, or in an earlier stream.
    pub(super) fn call(&self, lane: Option<&str>, call: &Arc<str>) -> String {
        let known = self.calls.get(&(lane.map(str::to_owned), call.clone()));
        known.cloned().unwrap_or_else(|| plain(lane, call))
    }
}

fn plain(lane: Option<&str>, call: &str) -> String {
    lane.map_or_else(|| call.to_owned(), |lane| format!("{lane}.{call}"))
}

/// Returns the original id of a call, without the suffix that distinguishes it from an earlier one.
pub(crate) fn own_id(known: &str) -> &str {
    match known.rsplit_once('~') {
        Some((own, again)) if !again.is_empty() && again.bytes().all(|c| c.is_ascii_digit()) => own,
        _ => known,
    }
}
