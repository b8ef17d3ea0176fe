//! The sub-agents that an agent of a session called.

use std::{collections::HashMap, sync::Arc};

use super::Top;
use crate::{journal::EntryBody, state::RunIds, state::RunStatus};

/// A sub-agent that an agent called, as a session knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SubAgentRecord {
    /// The id to recall it by.
    pub id: Arc<str>,
    /// The key that it was called under.
    pub key: String,
    /// Its newest run.
    pub run: Arc<str>,
    /// How that ended; `None` while it is under way, or after a crash.
    pub status: Option<RunStatus>,
    /// What it answered, if it finished.
    pub answer: Option<String>,
}

/// All calls of sub-agents in a session.
#[derive(Clone, Debug, Default)]
pub(super) struct SubAgents {
    /// Runs that were started and have not begun: who called them, and under which key.
    linked: HashMap<Arc<str>, (Arc<str>, String)>,
    known: Vec<Known>,
    /// Where the record of each run is.
    places: HashMap<Arc<str>, usize>,
}

#[derive(Clone, Debug)]
struct Known {
    record: SubAgentRecord,
    /// The agent that called it.
    caller: Arc<str>,
    /// Where its first run began, and the agent at the top then.
    first: Top,
    is_undone: bool,
}

impl SubAgents {
    /// The agent known as `caller` starts the run `run` of a sub-agent.
    pub(super) fn link(&mut self, caller: &Arc<str>, run: &Arc<str>, key: &str) {
        self.linked.insert(run.clone(), (caller.clone(), key.to_owned()));
    }

    /// A run begins in the tree of `top`.
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

    /// Forgets those that were first called since `before`, under the same agent at the top.
    pub(super) fn undo(&mut self, before: &Top) {
        for known in self.known.iter_mut().filter(|known| known.first.agent == before.agent) {
            known.is_undone |= known.first.seq >= before.seq;
        }
    }

    /// Those that the agent known as `caller` called, in the order of their first calls.
    pub(super) fn of(&self, caller: &str) -> impl Iterator<Item = &SubAgentRecord> {
        self.known.iter().filter(move |known| !known.is_undone && *known.caller == *caller).map(|known| &known.record)
    }
}
