//! [`SessionIndex`]: what a session's entries mean, in one pass.

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
    state::{Phase, RunIds, RunState, RunStatus},
    usage::Usage,
};

/// What a session's entries mean: the conversations of its agents, the shared storage, its runs and where they stand.
///
/// Every read side of a journal is a view of it, made in one pass: the same entries give the same views on every store.
/// Entries append to a conversation, replace it, or undo it back to before a run.
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
    /// The newest entry that was not taken but read from an [`Anchor`]; 0 if all were taken.
    since: u64,
    anchored: Anchored,
    /// An entry undid what is before the anchor.
    reached_back: bool,
    info: SessionInfo,
    globals: BTreeMap<String, Value>,
    agents: BTreeMap<Arc<str>, AgentIndex>,
    /// Whose each run is, and its place there.
    runs: BTreeMap<Arc<str>, (Arc<str>, usize)>,
    /// The runs of the newest tree of each agent at the top, without descendants that have ended and that no call waits for.
    states: States,
    sub_agents: SubAgents,
}

/// One agent of a session.
#[derive(Clone, Debug, Default)]
struct AgentIndex {
    /// The conversation, apart from that of a run whose state is kept.
    history: History,
    runs: Vec<RunRecord>,
    /// What the runs used, each counted once however often it began.
    usage: Usage,
    /// The newest run at the top of a tree.
    newest_root: Option<Arc<str>>,
    /// The agent at the top, if this one was called by others.
    above: Option<Arc<str>>,
}

/// The run at the top of a tree: where it began, and whose it is.
#[derive(Clone, Debug)]
struct Top {
    seq: u64,
    agent: Arc<str>,
}

/// What a session holds for one agent.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct SessionView {
    /// The agent's conversation. Calls that were never answered are answered "no result was recorded".
    pub history: History,
    /// The storage that the hierarchy shares.
    pub globals: BTreeMap<String, Value>,
    /// What the agent's runs used themselves.
    pub usage: Usage,
    /// The agent's newest run and how it ended; `None` while it is under way, or after a crash.
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

    /// The index as it was before the entry `seq`, read from the newest anchor if that is older.
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

    /// Takes what was written since the newest entry that was taken.
    ///
    /// # Errors
    /// Those of [`Journal::read`]; what was read before is taken.
    pub async fn catch_up(&mut self, journal: &(impl Journal + ?Sized), session: &str) -> Result<()> {
        each_entry(journal, session, self.seq(), |entry| self.apply(entry)).await
    }

    /// The sequence number of the newest entry that was taken; 0 before the first.
    pub fn seq(&self) -> u64 {
        self.newest.as_ref().map_or(0, |(seq, ..)| *seq)
    }

    /// True if `entry` is the newest one that was taken.
    pub(super) fn is_newest(&self, entry: &Entry) -> bool {
        self.newest.as_ref().is_some_and(|(seq, run, time)| (*seq, run, *time) == (entry.seq, &entry.run, entry.time))
    }

    // --- taking entries ---

    /// Takes the next entry of the session, in order.
    pub fn apply(&mut self, entry: &Entry) {
        self.newest = Some((entry.seq, entry.run.clone(), entry.time));
        self.info.apply(entry);
        match &entry.body {
            EntryBody::RunStarted { ids, fingerprint } => self.begin(ids, fingerprint, entry),
            EntryBody::Undone { before_run } => self.undo(before_run, entry.seq),
            EntryBody::Anchored { anchor } => self.take_anchor(entry.seq, anchor),
            body => {
                if let EntryBody::StateChanged { globals, .. } = body {
                    self.change_globals(globals); // the storage is the hierarchy's, whichever run changed it
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
        if let EntryBody::SubAgentLinked { key, run, .. } = &entry.body {
            self.sub_agents.link(agent, run, key);
        }
        self.sub_agents.apply(&entry.run, &entry.body);
        if let Some(agent) = self.agents.get_mut(agent) {
            agent.apply_to_run(*at, entry);
        }
        self.states.apply(entry);
        if let EntryBody::TurnEnded { .. } = &entry.body {
            let ended = self.states.take_ended_descendants(&entry.run);
            self.keep_histories(ended);
        }
    }

    fn begin(&mut self, ids: &RunIds, fingerprint: &str, entry: &Entry) {
        if ids.parent_run_id.is_none() {
            self.forget_trees_of(&ids.agent_id);
        }
        // What an earlier run left open is the earlier run's: undoing this one keeps it.
        let before = self.history(&ids.agent_id);
        self.enter(ids, entry.seq, entry.time, before.clone());
        self.states.insert_again(RunState::begin(ids, fingerprint, before, entry.time));
    }

    /// A run of an agent begins, with the conversation `before`.
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

    /// Keeps of the agent's trees before this one what the conversations came to.
    fn forget_trees_of(&mut self, agent_id: &str) {
        let runs = &self.runs;
        let trees = self.states.take_trees(|top| runs.get(top).is_some_and(|(agent, _)| **agent == *agent_id));
        self.keep_histories(trees);
    }

    /// Keeps of states that are no longer needed what the conversations came to.
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
            // What a sub-agent did is undone with the run at the top.
            for agent in self.agents.values_mut().filter(|agent| agent.above.as_ref() == Some(&top.agent)) {
                if let Some(at) = agent.runs.iter().position(|run| run.seq >= since) {
                    agent.undo_from(at, seq, &mut self.states);
                }
            }
        }
    }

    // --- a tree under way ---

    /// An agent's conversation, and a run of it that has not begun.
    pub(crate) fn seed(&mut self, ids: &RunIds, history: History) {
        if !self.runs.contains_key(&ids.run_id) {
            self.enter(ids, 0, 0, history.clone());
        }
        self.agents.entry(ids.agent_id.clone()).or_default().history = history.clone();
        self.states.insert_again(RunState::begin(ids, "", history, 0));
    }

    /// Takes where a run stood, with the child runs that it waits for, as if their entries had been taken.
    pub(crate) fn adopt(&mut self, checkpoint: &RunState) {
        let mut state = checkpoint.clone();
        state.saved_as = None; // that is where the earlier one is
        let children = state.adopt_children();
        self.enter(&state.ids, 0, 0, state.history.clone());
        self.states.insert_from(state, checkpoint);
        children.iter().for_each(|child| self.adopt(child));
    }

    /// True if the newest attempt at a run that is known is that of this checkpoint, or the run is known and over.
    pub(crate) fn knows(&self, checkpoint: &RunState) -> bool {
        match self.states.get(&checkpoint.ids.run_id) {
            Some(known) => known.attempt.is_some() && known.attempt == checkpoint.attempt,
            None => self.runs.contains_key(&checkpoint.ids.run_id),
        }
    }

    /// The state of a run that was seeded or adopted, or has begun; none if a turn of its caller's has ended since it did.
    pub(crate) fn state(&self, run: &str) -> Option<&RunState> {
        self.states.get(run)
    }

    /// Where a run stands, and the child runs that it waits for.
    pub(crate) fn at_rest(&self, state: &RunState) -> RunState {
        self.states.at_rest(state)
    }

    /// What comes next in a run, with where the child runs stand that its open calls wait for.
    pub(crate) fn phase(&self, state: &RunState) -> Phase {
        self.states.phase(state)
    }

    /// What a run used with all its descendants.
    pub(crate) fn tree_usage(&self, state: &RunState) -> Usage {
        self.states.tree_usage(state)
    }

    // --- views ---

    /// What the session holds for the agent that is known as `agent_id` there.
    pub fn view(&self, agent_id: &str) -> SessionView {
        let Some(agent) = self.agents.get(agent_id) else {
            return SessionView { globals: self.globals.clone(), ..SessionView::default() };
        };
        let last_run = agent.runs.last().map(|run| (run.run_id.clone(), run.status.clone()));
        SessionView { history: self.history(agent_id), globals: self.globals.clone(), usage: agent.usage, last_run }
    }

    /// The agent's conversation, with a turn that is still open: calls that were never answered are answered so.
    pub fn history(&self, agent_id: &str) -> History {
        let Some(agent) = self.agents.get(agent_id) else { return History::default() };
        let newest = agent.runs.last().and_then(|run| self.states.get(&run.run_id));
        newest.map_or_else(|| agent.history.clone(), RunState::closed_history)
    }

    /// The storage that the hierarchy shares.
    pub fn globals(&self) -> &BTreeMap<String, Value> {
        &self.globals
    }

    /// What is known of the session without its content.
    pub fn info(&self) -> &SessionInfo {
        &self.info
    }

    /// The agent's runs, oldest first, edits among them; of an index that is not [whole](Self::is_whole) the newest.
    pub fn runs(&self, agent_id: &str) -> &[RunRecord] {
        self.agents.get(agent_id).map_or(&[], |agent| &agent.runs)
    }

    /// A run, or an edit, by its id, with the id of its agent; none if there is no such run, or if the index is not
    /// [whole](Self::is_whole) and the run is older.
    pub fn run(&self, run: &str) -> Option<(&Arc<str>, &RunRecord)> {
        let (agent, at) = self.runs.get(run)?;
        Some((agent, self.agents.get(agent)?.runs.get(*at)?))
    }

    /// The conversation of a run's agent when the run had ended, before the next one; none if there is no such run, if it was undone, or if the index is not
    /// [whole](Self::is_whole) and does not have it.
    pub fn history_after(&self, run: &str) -> Option<History> {
        let (agent_id, at) = self.runs.get(run)?;
        let agent = self.agents.get(agent_id)?;
        let has_ended = |run: &&RunRecord| !run.undone && run.status.is_some();
        agent.runs.get(*at).filter(has_ended)?;
        let history = agent.runs.get(at + 1).map_or_else(|| self.history(agent_id), |next| next.before.clone());
        (!history.is_empty()).then_some(history)
    }

    /// The sub-agents that the agent known as `caller` called, in the order of their first calls. Those of runs that were
    /// undone are not among them, and of an index that is not [whole](Self::is_whole) none from before its anchor.
    pub fn sub_agents(&self, caller: &str) -> impl Iterator<Item = &SubAgentRecord> {
        self.sub_agents.of(caller)
    }

    /// Where the newest run of an agent stands, unless it is finished or undone: whether the run was suspended, failed, or died
    /// with its process.
    ///
    /// Only entries that were taken count. A tool that had begun and left no result is in [`RunState::begun`]: what becomes
    /// of it is decided by its [`Effect`](crate::Effect) when the run goes on. Take the entries while you hold the session's
    /// writer if you mean to go on: another process may be at it.
    pub fn unfinished(&self, agent_id: &str) -> Option<RunState> {
        let newest = self.agents.get(agent_id)?.newest_root.as_ref()?;
        let state = self.states.get(newest).filter(|state| state.is_open())?;
        let mut rest = self.states.at_rest(state);
        rest.globals = Some(self.globals.clone());
        Some(rest)
    }

    /// The sequence number with which the agent's newest run at the top of a tree began, unless it is finished.
    pub fn open_since(&self, agent_id: &str) -> Option<u64> {
        let newest = self.agents.get(agent_id)?.newest_root.as_deref()?;
        let is_open = |record: &&RunRecord| !matches!(record.status, Some(RunStatus::Finished(_)));
        self.record(newest).filter(is_open).map(|record| record.seq)
    }

    /// What the session knows of the run `ids` at its top; an index that is not [whole](Self::is_whole) knows nothing of older
    /// ones. Take the entries while you hold the session's writer if you mean to
    /// go on.
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

    /// The sequence number with which a run first began; 0 if there is no such run, or if the index is not
    /// [whole](Self::is_whole) and the run is older.
    pub fn began(&self, run: &str) -> u64 {
        let first =
            |agent: &AgentIndex| agent.runs.iter().find(|record| *record.run_id == *run).map(|record| record.seq);
        self.runs.get(run).and_then(|(agent, _)| self.agents.get(agent)).and_then(first).unwrap_or(0)
    }

    /// True if a run or an edit of this id began; of an index that is not [whole](Self::is_whole) older ones are not in it.
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

    /// Goes back to before the run at `at`; `seq` says when that happened.
    fn undo_from(&mut self, at: usize, seq: u64, states: &mut States) {
        let before = self.runs[at].before.clone();
        for run in &mut self.runs[at..] {
            run.undone = true;
            run.before = before.clone();
            run.tell(seq, Liveness::Over("the run was undone"));
            if let Some(state) = states.get_mut(&run.run_id) {
                state.trail.undone = true;
                state.undo(before.clone());
            }
        }
        self.history = before;
    }
}
