//! A place from which a session is read without what is before it: [`Anchor`].

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{AgentIndex, EntryBody, Liveness, RunRecord, SessionIndex, SessionInfo};
use crate::{
    history::History,
    state::{RunState, Trail},
    usage::Usage,
};

/// What a session's entries up to one of them mean for those that follow: a process that sees the session for the first time
/// reads this and what came since, however long the session is.
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
    /// The newest runs of agents that can go on, and those below them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    open: Vec<OpenRun>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct AnchoredAgent {
    /// The conversation; empty if the newest run is open, whose state has it.
    history: History,
    usage: Usage,
    /// The newest run at the top of a tree, the newest of all, and the open ones, each once.
    runs: Vec<RunRecord>,
    newest_root: Option<Arc<str>>,
}

/// All that the next entry of a run needs to know of those before.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct OpenRun {
    state: RunState,
    trail: Trail,
    /// The nonce of its newest attempt; none if it did not stop yet.
    attempt: Option<Arc<str>>,
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
        anchor.open.iter().cloned().for_each(|run| index.reopen(run));
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

    /// What to write so that the session need not be read from further back. None until there are `least` entries since the
    /// last one and twice as many as it would hold messages: so all anchors together are a part of what was written. None too
    /// if it could not be read back.
    pub fn anchor(&self, least: u64) -> Option<Anchor> {
        let since = self.info.entries - self.anchored;
        if since < least {
            return None;
        }
        let messages = self.agents.keys().map(|id| self.history(id).len() as u64).sum::<u64>();
        if since < 2 * messages {
            return None;
        }
        let can_go_on = |run: &&Arc<str>| self.states.get(run).is_some_and(RunState::is_open);
        let newest = self.agents.values().filter_map(|agent| agent.newest_root.as_ref()).filter(can_go_on);
        let open = self.states.of_trees(&newest.collect::<BTreeSet<_>>());
        let is_open = |run: &RunRecord| open.iter().any(|state| state.ids.run_id == run.run_id);
        let agents =
            self.agents.iter().map(|(id, agent)| (id.clone(), self.anchored_agent(id, agent, is_open))).collect();
        let anchor = Box::new(Anchor {
            newest: self.newest.clone()?,
            info: self.info.clone(),
            globals: self.globals.clone(),
            agents,
            open: open.into_iter().map(|state| self.open_run(state)).collect(),
        });
        // What was nested as deeply as can be read stands deeper in an anchor than in the entry that it is from.
        let read = EntryBody::from_json(&EntryBody::Anchored { anchor }.to_json().ok()?);
        match read.ok()? {
            EntryBody::Anchored { anchor } => Some(*anchor),
            _ => None,
        }
    }

    fn anchored_agent(&self, id: &str, agent: &AgentIndex, is_open: impl Fn(&RunRecord) -> bool) -> AnchoredAgent {
        let last = agent.runs.len().saturating_sub(1);
        let is_kept = |(at, run): &(usize, &RunRecord)| {
            let is_newest_of_its_id = self.runs.get(&run.run_id).is_some_and(|(_, newest)| newest == at);
            is_newest_of_its_id && (*at == last || agent.newest_root.as_ref() == Some(&run.run_id) || is_open(run))
        };
        AnchoredAgent {
            history: if agent.runs.last().is_some_and(&is_open) { History::default() } else { self.history(id) },
            usage: agent.usage,
            runs: agent.runs.iter().enumerate().filter(is_kept).map(|(_, run)| run.outline()).collect(),
            newest_root: agent.newest_root.clone(),
        }
    }

    fn open_run(&self, state: &RunState) -> OpenRun {
        let attempt = match self.record(&state.ids.run_id).map(|record| &record.liveness) {
            Some(Liveness::Open { attempt }) => attempt.clone(),
            _ => None,
        };
        OpenRun { state: state.clone(), trail: state.trail.clone(), attempt }
    }

    /// Takes a run that an anchor left open.
    fn reopen(&mut self, OpenRun { mut state, trail, attempt }: OpenRun) {
        state.trail = trail;
        if state.is_open()
            && let Some((agent, at)) = self.runs.get(&state.ids.run_id)
            && let Some(record) = self.agents.get_mut(agent).and_then(|agent| agent.runs.get_mut(*at))
        {
            record.tell(record.liveness_seq, Liveness::Open { attempt });
        }
        self.states.insert(state);
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
