//! Sub-agents of a run: which of them a call or a hook means that is entered again.

use std::sync::Arc;

use super::RunLog;
use crate::state::{ChildKey, ChildRun};

/// The owner of a sub-agent that is about to be started.
pub(crate) struct ChildOwner {
    /// The call or the hook, as a key without name and number.
    pub(crate) key: ChildKey,
    /// True for a call, or a hook around one.
    pub(crate) is_call: bool,
}

impl RunLog {
    /// Reserves the identity of the next sub-agent that `owner` starts under `key`, and returns it
    /// with the prefix of its questions' ids. Clones of a request reserve one after the other, so
    /// that none gets the sub-agent of another.
    pub(crate) fn next_child(&self, owner: ChildOwner, key: &str) -> (ChildKey, Option<Arc<str>>) {
        let ChildOwner { key: mut id, is_call } = owner;
        let mut open = self.open();
        let all = open.children.entry(id.clone()).or_default();
        let is_first = *all == 0;
        *all += 1;
        id.key = key.to_owned();
        let same = open.children.entry(id.clone()).or_default();
        let n = *same;
        *same += 1;
        id.n = n;
        // One place for each: two of them may ask the same at the same time.
        let place = match (n, is_call && id.hook.is_none() && is_first) {
            (_, true) => None,
            (0, false) => Some(format!("{}/{key}", id.owner()).into()),
            (n, false) => Some(format!("{}/{key}/{n}", id.owner()).into()),
        };
        (id, place)
    }

    /// The sub-agent that was started as `key` before the run was interrupted, with its checkpoint.
    pub(crate) fn known_child(&self, key: &ChildKey) -> Option<ChildRun> {
        self.look(|index, state| index.child(state, key))
    }

    /// True if the tool of the call `id` has run, or has begun to: one that only delegates, once it
    /// has started a sub-agent.
    pub fn has_begun(&self, id: &str, delegates: bool) -> bool {
        self.look(|_, state| match delegates {
            true => state.children_of_step().any(|child| *child.call_id == *id),
            false => state.run_meta.counted.contains_key(id),
        })
    }
}
