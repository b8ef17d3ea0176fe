//! [`SessionIndex`]: the state of a session, folded from its entries in one pass.
// Over 500 lines: one fold, and the views of its result.

mod anchor;
mod at_rest;
mod cache;
mod info;
mod liveness;
mod runs;
mod sub_agents;
#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, sync::Arc};

use serde_json::Value;

pub(super) use self::info::read_info;
pub use self::{
    anchor::Anchor,
    cache::{IndexCache, SharedIndex},
    info::SessionInfo,
    liveness::{Liveness, liveness_of},
    runs::{EDITED, RunRecord},
    sub_agents::SubAgentRecord,
};
use self::{anchor::Anchored, at_rest::States, sub_agents::SubAgents};
use super::{Entry, EntryBody, Journal, each_entry, each_entry_while};
use crate::{
    error::Result,
    history::History,
    state::{ChildKey, ChildRun, Phase, RunIds, RunState, RunStatus},
    usage::Usage,
};

/// State of a session, folded from its entries: the conversations of its agents, the shared
/// storage, and its runs with their states.
///
/// Every read model of a journal is a view of this index, built in one pass: the same entries
/// produce the same views on every store. Entries append to a conversation, replace it, or undo it
/// back to before a run.
///
/// ```
/// use agent_core::{Message, RunIds, journal::{Entry, EntryBody, SessionIndex}};
/// use std::sync::Arc;
///
/// let ids = Arc::new(RunIds::root("assistant", "session"));
/// let run = ids.run_id.clone();
/// let bodies = [
///     EntryBody::RunStarted { ids, fingerprint: String::new() },
///     EntryBody::MessageAppended { message: Message::user("Hello.") },
/// ];
/// let mut index = SessionIndex::default();
/// for (seq, body) in (1..).zip(bodies) {
///     let mut entry = Entry::new(run.clone(), 0, body);
///     entry.seq = seq;
///     index.apply(&entry);
/// }
/// assert_eq!(index.view("assistant").history.len(), 1);
/// assert!(index.unfinished("assistant").is_some(), "the run did not end");
/// ```
#[derive(Clone, Debug, Default)]
pub struct SessionIndex {
    newest: Option<(u64, Arc<str>, u64)>,
    /// Sequence number of the newest entry that was read from an [`Anchor`] instead of applied; 0
    /// if all were applied.
    since: u64,
    anchored: Anchored,
    /// True if an entry undid a run from before the anchor.
    reached_back: bool,
    info: SessionInfo,
    globals: BTreeMap<String, Value>,
    agents: BTreeMap<Arc<str>, AgentIndex>,
    /// Agent of each run, and the index of its record there.
    runs: BTreeMap<Arc<str>, (Arc<str>, usize)>,
    /// States of the runs in the newest tree of each root agent, without ended descendants that no
    /// call waits for.
    states: States,
    sub_agents: SubAgents,
    /// True for the index of a tree in progress: only the ids remain of descendants that have ended
    /// and that no call waits for.
    is_live: bool,
}

/// One agent of a session.
#[derive(Clone, Debug, Default)]
struct AgentIndex {
    /// The conversation, excluding that of a run whose state is kept.
    history: History,
    runs: Vec<RunRecord>,
    /// Total usage of the runs; a run that began several times counts once.
    usage: Usage,
    /// The newest root run.
    newest_root: Option<Arc<str>>,
    /// The root agent, if this agent was called by others.
    above: Option<Arc<str>>,
}

/// The root of a tree of runs: the sequence number of its start, and its agent.
#[derive(Clone, Debug)]
struct Top {
    seq: u64,
    agent: Arc<str>,
}

/// View of one agent in a session.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct SessionView {
    /// The agent's conversation. Unanswered calls have the result "no result was recorded".
    pub history: History,
    /// Storage that the hierarchy shares.
    pub globals: BTreeMap<String, Value>,
    /// Usage of the agent's own runs.
    pub usage: Usage,
    /// The agent's newest run and its status; `None` while it is running, or after a crash.
    pub last_run: Option<(Arc<str>, Option<RunStatus>)>,
}

impl SessionIndex {
    /// Reads a whole session.
    ///
    /// # Errors
    /// Those of [`Journal::read`].
    pub async fn read(journal: &(impl Journal + ?Sized), session: &str) -> Result<Self> {
        let mut index = Self::default();
        index.catch_up(journal, session).await?;
        Ok(index)
    }

    /// Returns the index as of before the entry `seq`, starting from the newest anchor before that
    /// entry.
    ///
    /// # Errors
    /// Those of [`Journal::read`] and [`Journal::anchor`].
    pub async fn before(journal: &(impl Journal + ?Sized), session: &str, seq: u64) -> Result<Self> {
        let mut index = Self::anchored(journal, session, seq).await?;
        index.take_before(journal, session, seq).await?;
        if !index.is_sound() {
            index = Self::default();
            index.take_before(journal, session, seq).await?;
        }
        Ok(index)
    }

    async fn take_before(&mut self, journal: &(impl Journal + ?Sized), session: &str, seq: u64) -> Result<()> {
        let after = self.seq();
        each_entry_while(journal, session, after, |entry| {
            let is_before = entry.seq < seq;
            if is_before {
                self.apply(entry);
            }
            is_before
        })
        .await
    }

    /// Applies the entries written since the newest applied entry.
    ///
    /// # Errors
    /// Those of [`Journal::read`]; entries read before the error are applied.
    pub async fn catch_up(&mut self, journal: &(impl Journal + ?Sized), session: &str) -> Result<()> {
        each_entry(journal, session, self.seq(), |entry| self.apply(entry)).await
    }

    /// Sequence number of the newest applied entry; 0 before the first.
    pub fn seq(&self) -> u64 {
        self.newest.as_ref().map_or(0, |(seq, ..)| *seq)
    }

    /// True if `entry` is the newest applied entry.
    pub(super) fn is_newest(&self, entry: &Entry) -> bool {
        self.newest.as_ref().is_some_and(|(seq, run, time)| (*seq, run, *time) == (entry.seq, &entry.run, entry.time))
    }

    // --- applying entries ---

    /// Applies the next entry of the session; entries must be applied in order.
    pub fn apply(&mut self, entry: &Entry) {
        self.newest = Some((entry.seq, entry.run.clone(), entry.time));
        self.info.apply(entry);
        match &entry.body {
            EntryBody::RunStarted { ids, fingerprint } => self.begin(ids, fingerprint, entry),
            EntryBody::Undone { before_run } => self.undo(before_run, entry.seq),
            EntryBody::Anchored { anchor } => self.take_anchor(entry.seq, anchor),
            body => {
                if let EntryBody::StateChanged { globals, .. } = body {
                    self.change_globals(globals); // shared by all runs of the hierarchy
                }
                self.apply_to_run(entry);
            }
        }
    }

    fn change_globals(&mut self, changes: &BTreeMap<String, Option<Value>>) {
        for (key, value) in changes {
            match value {
                Some(value) => drop(self.globals.insert(key.clone(), value.clone())),
                None => drop(self.globals.remove(key)),
            }
        }
    }

    fn apply_to_run(&mut self, entry: &Entry) {
        let Some((agent, at)) = self.runs.get(&entry.run) else { return };
        if let EntryBody::SubAgentLinked { key, run, .. } = &entry.body
            && !self.is_live
        {
            self.sub_agents.link(agent, run, key);
        }
        self.sub_agents.apply(&entry.run, &entry.body);
        if let Some(agent) = self.agents.get_mut(agent) {
            agent.apply_to_run(*at, entry);
        }
        self.states.apply(entry);
        if let EntryBody::TurnEnded { .. } = &entry.body {
            let ended = self.states.take_ended_descendants(&entry.run);
            match self.is_live {
                true => self.forget(&ended),
                false => self.keep_histories(ended),
            }
        }
    }

    fn begin(&mut self, ids: &RunIds, fingerprint: &str, entry: &Entry) {
        if ids.parent_run_id.is_none() {
            self.forget_trees_of(&ids.agent_id);
        }
        // An open turn belongs to the earlier run: undoing this run keeps it.
        let before = self.history(&ids.agent_id);
        self.enter(ids, entry.seq, entry.time, before.clone());
        self.states.insert_again(RunState::begin(ids, fingerprint, before, entry.time));
    }

    /// Drops all but the ids of runs that have ended.
    fn forget(&mut self, ended: &[RunState]) {
        for RunState { ids, .. } in ended {
            if self.agents.get(&ids.agent_id).is_some_and(|agent| agent.newest_is(&ids.run_id)) {
                self.agents.remove(&ids.agent_id);
            }
        }
    }

    /// Records that a run of an agent begins, with the conversation `before`.
    fn enter(&mut self, ids: &RunIds, seq: u64, time: u64, before: History) {
        let is_root = ids.parent_run_id.is_none();
        let top = self.top_of(&ids.root_run_id).filter(|_| !is_root);
        if let Some((agent, at)) = self.runs.get(&ids.run_id)
            && let Some(agent) = self.agents.get_mut(agent)
        {
            agent.usage -= agent.runs[*at].usage; // the run begins again
        }
        let agent = self.agents.entry(ids.agent_id.clone()).or_default();
        agent.history = before.clone();
        agent.above = top.as_ref().map(|top| top.agent.clone());
        if is_root {
            agent.newest_root = Some(ids.run_id.clone());
        }
        self.runs.insert(ids.run_id.clone(), (ids.agent_id.clone(), agent.runs.len()));
        agent.runs.push(RunRecord::new(ids, seq, time, before));
        self.sub_agents.begin(ids, top.unwrap_or(Top { seq, agent: ids.agent_id.clone() }));
    }

    /// Drops the states of the agent's earlier trees, and keeps their final conversations.
    fn forget_trees_of(&mut self, agent_id: &str) {
        let runs = &self.runs;
        let trees = self.states.take_trees(|top| runs.get(top).is_some_and(|(agent, _)| **agent == *agent_id));
        self.keep_histories(trees);
    }

    /// Keeps the final conversations of states that are dropped.
    fn keep_histories(&mut self, states: Vec<RunState>) {
        for state in states {
            if let Some(agent) = self.agents.get_mut(&state.ids.agent_id)
                && agent.newest_is(&state.ids.run_id)
            {
                agent.history = state.closed_history();
            }
        }
    }

    fn top_of(&self, root: &str) -> Option<Top> {
        let record = self.record(root).filter(|record| record.is_root)?;
        Some(Top { seq: record.seq, agent: self.runs[&record.run_id].0.clone() })
    }

    fn undo(&mut self, before_run: &str, seq: u64) {
        let is_here = self.record(before_run).is_some_and(|run| self.is_whole() || run.seq > self.since);
        self.reached_back |= !is_here && !self.is_whole();
        let Some((agent_id, at)) = self.runs.get(before_run).filter(|_| is_here).cloned() else { return };
        let Some(agent) = self.agents.get_mut(&agent_id) else { return };
        let (since, is_root) = (agent.runs[at].seq, agent.runs[at].is_root);
        agent.undo_from(at, seq, &mut self.states);
        if is_root {
            let top = Top { seq: since, agent: agent_id };
            self.sub_agents.undo(&top);
            // Undoing a root run also undoes the runs of its sub-agents.
            for agent in self.agents.values_mut().filter(|agent| agent.above.as_ref() == Some(&top.agent)) {
                if let Some(at) = agent.runs.iter().position(|run| run.seq >= since) {
                    agent.undo_from(at, seq, &mut self.states);
                }
            }
        }
    }

    // --- a running tree ---

    /// Creates the index of a tree in progress.
    pub(crate) fn live() -> Self {
        Self { is_live: true, ..Self::default() }
    }

    /// Sets an agent's conversation, and enters a run of the agent that has not begun.
    pub(crate) fn seed(&mut self, ids: &RunIds, history: History) {
        if !self.runs.contains_key(&ids.run_id) {
            self.enter(ids, 0, 0, history.clone());
        }
        self.agents.entry(ids.agent_id.clone()).or_default().history = history.clone();
        self.states.insert_again(RunState::begin(ids, "", history, 0));
    }

    /// Enters a run from its checkpoint, with the child runs that it waits for, as if their entries
    /// had been applied.
    pub(crate) fn adopt(&mut self, checkpoint: &RunState) {
        let mut state = checkpoint.clone();
        state.saved_as = None; // the handle belongs to the earlier checkpoint
        let children = state.adopt_children();
        self.enter(&state.ids, 0, 0, state.history.clone());
        self.states.insert_from(state, checkpoint);
        children.iter().for_each(|child| self.adopt(child));
    }

    /// True if this is the checkpoint of the newest known attempt at the run, or if the run is
    /// known and over.
    pub(crate) fn knows(&self, checkpoint: &RunState) -> bool {
        match self.states.get(&checkpoint.ids.run_id) {
            Some(known) => known.attempt.is_some() && known.attempt == checkpoint.attempt,
            None => self.runs.contains_key(&checkpoint.ids.run_id),
        }
    }

    /// The state of a run that was seeded or adopted, or has begun; `None` once it has ended and a
    /// turn of its caller has ended since.
    pub(crate) fn state(&self, run: &str) -> Option<&RunState> {
        self.states.get(run)
    }

    /// The checkpoint of a run, including the child runs that it waits for.
    pub(crate) fn at_rest(&self, state: &RunState) -> RunState {
        self.states.at_rest(state)
    }

    /// The sub-agent of a run that `key` names, with its checkpoint.
    pub(crate) fn child(&self, state: &RunState, key: &ChildKey) -> Option<ChildRun> {
        self.states.child(state, key)
    }

    /// The phase of a run. Open calls that have sub-agents are suspended.
    pub(crate) fn phase(&self, state: &RunState) -> Phase {
        self.states.phase(state)
    }

    /// Usage of a run and all its descendants.
    pub(crate) fn tree_usage(&self, state: &RunState) -> Usage {
        self.states.tree_usage(state)
    }

    // --- views ---

    /// Returns the view of the agent `agent_id`.
    pub fn view(&self, agent_id: &str) -> SessionView {
        let Some(agent) = self.agents.get(agent_id) else {
            return SessionView { globals: self.globals.clone(), ..SessionView::default() };
        };
        let last_run = agent.runs.last().map(|run| (run.run_id.clone(), run.status.clone()));
        SessionView { history: self.history(agent_id), globals: self.globals.clone(), usage: agent.usage, last_run }
    }

    /// Returns the agent's conversation including an open turn; unanswered calls get an error
    /// result.
    pub fn history(&self, agent_id: &str) -> History {
        let Some(agent) = self.agents.get(agent_id) else { return History::default() };
        let newest = agent.runs.last().and_then(|run| self.states.get(&run.run_id));
        newest.map_or_else(|| agent.history.clone(), RunState::closed_history)
    }

    /// Storage that the hierarchy shares.
    pub fn globals(&self) -> &BTreeMap<String, Value> {
        &self.globals
    }

    /// Metadata of the session.
    pub fn info(&self) -> &SessionInfo {
        &self.info
    }

    /// The agent's runs, oldest first, including edits; only the newest ones if the index is not
    /// [whole](Self::is_whole).
    pub fn runs(&self, agent_id: &str) -> &[RunRecord] {
        self.agents.get(agent_id).map_or(&[], |agent| &agent.runs)
    }

    /// Ids of all agents, including sub-agents.
    pub(crate) fn agent_ids(&self) -> impl Iterator<Item = &Arc<str>> {
        self.agents.keys()
    }

    /// Returns a run, or an edit, by its id, with the id of its agent; `None` if there is no such
    /// run, or if the index is not [whole](Self::is_whole) and the run is older.
    pub fn run(&self, run: &str) -> Option<(&Arc<str>, &RunRecord)> {
        let (agent, at) = self.runs.get(run)?;
        Some((agent, self.agents.get(agent)?.runs.get(*at)?))
    }

    /// Returns the conversation of a run's agent after the run and before the next one; `None` if
    /// there is no such run, if it was undone or has not ended, or if the index is not
    /// [whole](Self::is_whole) and does not contain it.
    pub fn history_after(&self, run: &str) -> Option<History> {
        let (agent_id, at) = self.runs.get(run)?;
        let agent = self.agents.get(agent_id)?;
        let has_ended = |run: &&RunRecord| !run.undone && run.status.is_some();
        agent.runs.get(*at).filter(has_ended)?;
        let history = agent.runs.get(at + 1).map_or_else(|| self.history(agent_id), |next| next.before.clone());
        (!history.is_empty()).then_some(history)
    }

    /// The sub-agents that the agent `caller` called, in the order of their first calls. Excludes
    /// those of undone runs and, if the index is not [whole](Self::is_whole), those from before its
    /// anchor.
    pub fn sub_agents(&self, caller: &str) -> impl Iterator<Item = &SubAgentRecord> {
        self.sub_agents.of(caller)
    }

    /// Returns the checkpoint of an agent's newest root run, unless that is finished or undone: the
    /// run was suspended, failed, or died with its process.
    ///
    /// Considers only applied entries. A tool call that began and has no result is in
    /// [`RunState::begun`]; its [`Effect`](crate::Effect) decides how it is handled on resume. A
    /// caller that wants to resume the run must hold the session's writer while it applies the
    /// entries: another process may be running it.
    pub fn unfinished(&self, agent_id: &str) -> Option<RunState> {
        let newest = self.agents.get(agent_id)?.newest_root.as_ref()?;
        let state = self.states.get(newest).filter(|state| state.is_open())?;
        let mut rest = self.states.at_rest(state);
        rest.globals = Some(self.globals.clone());
        Some(rest)
    }

    /// Returns the sequence number with which the agent's newest root run began, unless the run is
    /// finished.
    pub fn open_since(&self, agent_id: &str) -> Option<u64> {
        let newest = self.agents.get(agent_id)?.newest_root.as_deref()?;
        let is_open = |record: &&RunRecord| !matches!(record.status, Some(RunStatus::Finished(_)));
        self.record(newest).filter(is_open).map(|record| record.seq)
    }

    /// Returns the liveness of the root run `ids`; [`Liveness::Unknown`] for an older run if the
    /// index is not [whole](Self::is_whole). A caller that wants to resume the run must hold the
    /// session's writer while it applies the entries.
    pub fn liveness(&self, ids: &RunIds) -> Liveness {
        let of_agent = |record: &&RunRecord| record.is_root && *self.runs[&record.run_id].0 == *ids.agent_id;
        let Some(record) = self.record(&ids.run_id).filter(of_agent) else { return Liveness::Unknown };
        let newest = self.agents[&ids.agent_id].newest_root.as_deref().and_then(|newest| self.record(newest));
        match newest {
            Some(newest) if newest.seq > record.liveness_seq => {
                Liveness::Over("the agent began another run in its session since")
            }
            _ => record.liveness.clone(),
        }
    }

    /// Returns the sequence number with which a run first began; 0 if there is no such run, or if
    /// the index is not [whole](Self::is_whole) and the run is older.
    pub fn began(&self, run: &str) -> u64 {
        let first =
            |agent: &AgentIndex| agent.runs.iter().find(|record| *record.run_id == *run).map(|record| record.seq);
        self.runs.get(run).and_then(|(agent, _)| self.agents.get(agent)).and_then(first).unwrap_or(0)
    }

    /// True if a run or an edit with this id began; an index that is not [whole](Self::is_whole)
    /// lacks older ones.
    pub(crate) fn has_run(&self, run: &str) -> bool {
        self.runs.contains_key(run)
    }

    /// The newest record of a run.
    fn record(&self, run: &str) -> Option<&RunRecord> {
        self.run(run).map(|(_, record)| record)
    }
}

impl AgentIndex {
    fn newest_is(&self, run: &str) -> bool {
        self.runs.last().is_some_and(|newest| *newest.run_id == *run)
    }

    fn apply_to_run(&mut self, at: usize, entry: &Entry) {
        let run = &mut self.runs[at];
        self.usage -= run.usage;
        run.apply(entry);
        self.usage += run.usage;
    }

    /// Reverts to before the run at `at`; `seq` is the sequence number of the entry that undid it.
    fn undo_from(&mut self, at: usize, seq: u64, states: &mut States) {
        let before = self.runs[at].before.clone();
        for run in &mut self.runs[at..] {
            run.undone = true;
            run.before = before.clone();
            run.tell(seq, Liveness::Over("the run was undone"));
            if let Some(state) = states.get_mut(&run.run_id) {
                state.run_meta.undone = true;
                state.undo(before.clone());
            }
        }
        self.history = before;
    }
}
