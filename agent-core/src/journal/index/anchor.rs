//! A place from which a session is read without what is before it: [`Anchor`].

use std::{collections::BTreeMap, sync::Arc};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{AgentIndex, Liveness, RunRecord, SessionIndex, SessionInfo};
use crate::{history::History, state::RunState, usage::Usage};

/// What a session's entries up to one of them mean for those that follow, while no run is under way: a process that sees the
/// session for the first time reads this and what came since, however long the session is.
///
/// Nothing is lost by it, and nothing is true only because it says so: what an anchor does not hold (older runs, and what undoing
/// them brings back) is read from the entries before it, and without the anchor all of it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Anchor {
    /// The newest entry that it tells of: its number, run and time.
    newest: (u64, Arc<str>, u64),
    info: SessionInfo,
    globals: BTreeMap<String, Value>,
    agents: BTreeMap<Arc<str>, AnchoredAgent>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct AnchoredAgent {
    history: History,
    usage: Usage,
    /// The newest run at the top of a tree and the newest of all, each once.
    runs: Vec<RunRecord>,
    newest_root: Option<Arc<str>>,
}

impl SessionIndex {
    /// The index that an anchor stands for. Older runs are not in it: it [is not whole](Self::is_whole).
    pub fn since(anchor: &Anchor) -> Self {
        let mut index = Self {
            newest: Some(anchor.newest.clone()),
            since: anchor.newest.0,
            anchored: anchor.info.entries,
            info: anchor.info.clone(),
            globals: anchor.globals.clone(),
            ..Self::default()
        };
        for (id, agent) in &anchor.agents {
            let runs = agent.runs.iter().cloned().map(RunRecord::over).collect::<Vec<_>>();
            index.runs.extend(runs.iter().enumerate().map(|(at, run)| (run.run_id.clone(), (id.clone(), at))));
            let AnchoredAgent { history, usage, newest_root, .. } = agent.clone();
            index.agents.insert(id.clone(), AgentIndex { history, runs, usage, newest_root, above: None });
        }
        index
    }

    /// True if every run of the session is in it, also those before the newest anchor.
    pub fn is_whole(&self) -> bool {
        self.since == 0
    }

    /// True unless an entry since the anchor undid what is before it: then the session must be read from its beginning.
    pub fn is_sound(&self) -> bool {
        !self.reached_back
    }

    /// What to write so that the session need not be read from further back. None while a run is under way, stopped or failed,
    /// and until there are `least` entries since the last one and twice as many as it would hold messages: so all anchors
    /// together are a part of what was written.
    pub fn anchor(&self, least: u64) -> Option<Anchor> {
        let messages = self.agents.values().map(|agent| agent.history.len() as u64).sum::<u64>();
        let is_open = |agent: &AgentIndex| {
            let newest = agent.newest_root.as_deref().and_then(|newest| self.states.get(newest));
            newest.is_some_and(RunState::is_open)
        };
        if self.info.entries - self.anchored < least.max(2 * messages) || self.agents.values().any(is_open) {
            return None;
        }
        let agents = self.agents.iter().map(|(id, agent)| (id.clone(), self.anchored_agent(id, agent))).collect();
        let newest = self.newest.clone()?;
        Some(Anchor { newest, info: self.info.clone(), globals: self.globals.clone(), agents })
    }

    fn anchored_agent(&self, id: &str, agent: &AgentIndex) -> AnchoredAgent {
        let is_root = |run: &&RunRecord| agent.newest_root.as_ref() == Some(&run.run_id);
        let root = agent.runs.iter().rfind(is_root);
        let last = agent.runs.last().filter(|last| root.is_none_or(|root| root.run_id != last.run_id));
        AnchoredAgent {
            history: self.history(id),
            usage: agent.usage,
            runs: root.into_iter().chain(last).map(RunRecord::outline).collect(),
            newest_root: agent.newest_root.clone(),
        }
    }
}

impl RunRecord {
    /// The record without what only undoing the run needs.
    fn outline(&self) -> Self {
        Self { before: History::default(), liveness: Liveness::Unknown, ..self.clone() }
    }

    /// The record of a run that is not gone on with.
    fn over(mut self) -> Self {
        let why = if self.undone { "the run was undone" } else { "the run is finished" };
        self.tell(self.liveness_seq, Liveness::Over(why));
        self
    }
}
