//! Index of the sub-agents that an agent of a session called.

use std::{collections::HashMap, sync::Arc};

use super::Top;
use crate::{journal::EntryBody, state::RunIds, state::RunStatus};

/// Record of a sub-agent that an agent called in a session.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SubAgentRecord {
    /// Agent id with which the sub-agent can be resumed.
    pub id: Arc<str>,
    /// Key under which it was called.
    pub key: String,
    /// Id of its newest run.
    pub run: Arc<str>,
    /// Status of its newest run; `None` while it is running, or after a crash.
    pub status: Option<RunStatus>,
    /// Answer of the sub-agent, if it finished.
    pub answer: Option<String>,
}

/// All sub-agent calls of a session.
#[derive(Clone, Debug, Default)]
pub(super) struct SubAgents {
    /// Caller and key of the runs that were linked and have not begun.
    linked: HashMap<Arc<str>, (Arc<str>, String)>,
    known: Vec<Known>,
    /// Index into `known`, by run id.
    places: HashMap<Arc<str>, usize>,
}

#[derive(Clone, Debug)]
struct Known {
    record: SubAgentRecord,
    /// Id of the calling agent.
    caller: Arc<str>,
    /// Start of its first run, and the root agent at that time.
    first: Top,
    is_undone: bool,
}

impl SubAgents {
    /// Records that the agent `caller` starts the run `run` of a sub-agent.
    pub(super) fn link(&mut self, caller: &Arc<str>, run: &Arc<str>, key: &str) {
        self.linked.insert(run.clone(), (caller.clone(), key.to_owned()));
    }

    /// Records that a run begins in the tree of `top`.
    pub(super) fn begin(&mut self, ids: &RunIds, top: Top) {
        let Some((caller, key)) = self.linked.remove(&ids.run_id) else { return };
        let record =
            SubAgentRecord { id: ids.agent_id.clone(), key, run: ids.run_id.clone(), status: None, answer: None };
        let is_it = |known: &Known| !known.is_undone && known.caller == caller && known.record.id == record.id;
        let at = match self.known.iter().rposition(is_it) {
            Some(at) => {
                self.known[at].record = record;
                at
            }
            None => {
                self.known.push(Known { record, caller, first: top, is_undone: false });
                self.known.len() - 1
            }
        };
        self.places.insert(ids.run_id.clone(), at);
    }

    pub(super) fn apply(&mut self, run: &Arc<str>, body: &EntryBody) {
        let (status, answer) = match body {
            EntryBody::RunResumed { .. } => (None, None),
            EntryBody::RunEnded { status, answer, .. } => (Some(status.clone()), answer.as_deref().map(Into::into)),
            _ => return,
        };
        let record = self.places.get(run).map(|at| &mut self.known[*at].record);
        if let Some(record) = record.filter(|record| record.run == *run) {
            (record.status, record.answer) = (status, answer);
        }
    }

    /// Removes those that were first called since `before`, under the same root agent.
    pub(super) fn undo(&mut self, before: &Top) {
        for known in self.known.iter_mut().filter(|known| known.first.agent == before.agent) {
            known.is_undone |= known.first.seq >= before.seq;
        }
    }

    /// The sub-agents that the agent `caller` called, in the order of their first calls.
    pub(super) fn of(&self, caller: &str) -> impl Iterator<Item = &SubAgentRecord> {
        self.known.iter().filter(move |known| !known.is_undone && *known.caller == *caller).map(|known| &known.record)
    }
}
