//! Snapshots of a session: [`Anchor`].

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{AgentIndex, Entry, EntryBody, Journal, Liveness, RunRecord, SessionIndex, SessionInfo};
use crate::{
    error::Result,
    history::History,
    state::{RunMeta, RunState, is_default},
    usage::Usage,
};

/// Snapshot of a session at one of its entries. A process that opens the session for the first time
/// reads the snapshot and the entries after it, regardless of the session's length.
///
/// A snapshot is incremental: it extends the snapshot before it, and contains only the changes
/// since then. For each agent that was active, it contains the messages appended to the
/// conversation. After 32 of them, and after a conversation was replaced, comes a
/// self-contained snapshot, so that the number of reads is bounded too.
///
/// Snapshots are an optimisation: data that they do not contain (older runs, and the conversations
/// that undoing them restores) is read from earlier entries, and without snapshots everything is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Anchor {
    /// Sequence number, run and time of the newest entry that the snapshot covers.
    newest: (u64, Arc<str>, u64),
    /// Sequence number of the snapshot that this one extends; `None` if it is self-contained.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    base: Option<u64>,
    info: SessionInfo,
    globals: BTreeMap<String, Value>,
    /// The agents that changed since the snapshot before.
    agents: BTreeMap<Arc<str>, AnchoredAgent>,
    /// The newest resumable runs of agents, with their descendants.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    open: Vec<OpenRun>,
}

impl Anchor {
    /// Sequence number of the snapshot that this one extends and without which it cannot be read;
    /// `None` if it is self-contained.
    pub fn base(&self) -> Option<u64> {
        self.base
    }
}

/// Number of snapshots of which each extends the one before.
const CHAIN: u32 = 32;

/// One agent in a snapshot.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct AnchoredAgent {
    /// Number of messages taken from the conversation in the snapshot before: all of them, or zero.
    #[serde(default, skip_serializing_if = "is_default")]
    kept: usize,
    /// The messages that follow. If the newest run is open, they belong to its state.
    history: History,
    usage: Usage,
    /// The newest root run, the newest run of all, and the open runs, each once.
    runs: Vec<RunRecord>,
    newest_root: Option<Arc<str>>,
}

/// Complete state of an open run, to which later entries can be applied.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct OpenRun {
    /// State without the conversation if this is the newest run of its agent, which has it.
    state: RunState,
    run_meta: RunMeta,
    /// Nonce of the newest attempt; `None` if the run has not stopped yet.
    attempt: Option<Arc<str>>,
}

/// The newest snapshot, merged with all those that it extends.
#[derive(Clone, Debug, Default)]
pub(super) struct Anchored {
    /// Sequence number of its entry; 0 before the first.
    seq: u64,
    /// Number of entries that it covers.
    entries: u64,
    /// Number of snapshots that it was merged from.
    chain: u32,
    /// All agents, with their whole conversations.
    agents: BTreeMap<Arc<str>, AnchoredAgent>,
}

impl Anchored {
    /// Applies the next snapshot. Conversations are shared with those of `known` where they are
    /// equal, so that the next snapshot recognises the continuation.
    fn go_on<'a>(&mut self, seq: u64, anchor: &Anchor, known: impl Fn(&str) -> Option<&'a History>) {
        if anchor.base.is_none() {
            self.agents.clear();
            self.chain = 0;
        }
        self.chain += 1;
        for (id, said) in &anchor.agents {
            let earlier = self.agents.remove(id).map(|agent| agent.history).filter(|_| said.kept > 0);
            let earlier = earlier.unwrap_or_default();
            let whole = known(id).and_then(|known| shared(known, &earlier, &said.history));
            let history = whole.unwrap_or_else(|| earlier.joined(&said.history));
            self.agents.insert(id.clone(), AnchoredAgent { kept: 0, history, ..said.clone() });
        }
        (self.seq, self.entries) = (seq, anchor.info.entries);
    }

    /// True if the next snapshot had better be self-contained: the chain is long, or a conversation
    /// was replaced, so that the earlier snapshots contain little that is still needed.
    fn is_used_up(&self, agents: &BTreeMap<Arc<str>, AnchoredAgent>) -> bool {
        let is_replaced = |(id, agent): (&Arc<str>, &AnchoredAgent)| {
            self.agents.get(id).is_some_and(|known| agent.history.since(&known.history).is_none())
        };
        self.chain >= CHAIN || agents.iter().any(is_replaced)
    }

    /// Returns the agent without the part already in snapshots; `None` if nothing changed.
    fn change(&self, id: &str, mut agent: AnchoredAgent) -> Option<AnchoredAgent> {
        let Some(known) = self.agents.get(id) else { return Some(agent) };
        // A conversation that is not a continuation is written as a whole.
        let Some(since) = agent.history.since(&known.history) else { return Some(agent) };
        let Ok(since) = History::from_messages(since.cloned()) else { return Some(agent) };
        let is_known = since.is_empty()
            && (agent.usage, &agent.runs, &agent.newest_root) == (known.usage, &known.runs, &known.newest_root);
        (agent.kept, agent.history) = (known.history.len(), since);
        (!is_known).then_some(agent)
    }
}

/// Returns the beginning of `known`, if that equals `earlier` followed by `said`.
fn shared(known: &History, earlier: &History, said: &History) -> Option<History> {
    let len = earlier.len() + said.len();
    let is_it = known.len() >= len && known.since(earlier)?.take(said.len()).eq(said.iter());
    is_it.then(|| known.first(len))
}

impl SessionIndex {
    /// Builds the index from these snapshots: the anchors of one session, oldest first, beginning
    /// with a self-contained one. Older runs are not included: the index [is not
    /// whole](Self::is_whole). Without an anchor the index is empty.
    pub fn since<'a>(anchors: impl IntoIterator<Item = &'a Entry>) -> Self {
        let (mut anchored, mut newest) = (Anchored::default(), None);
        for entry in anchors {
            if let EntryBody::Anchored { anchor } = &entry.body {
                anchored.go_on(entry.seq, anchor, |_| None);
                newest = Some(anchor);
            }
        }
        let Some(anchor) = newest else { return Self::default() };
        let mut index = Self {
            newest: Some(anchor.newest.clone()),
            since: anchor.newest.0,
            info: anchor.info.clone(),
            globals: anchor.globals.clone(),
            ..Self::default()
        };
        let open: BTreeSet<_> = anchor.open.iter().map(|run| &run.state.ids.run_id).collect();
        for (id, agent) in &anchored.agents {
            let runs = agent.runs.iter().cloned().map(RunRecord::over).collect::<Vec<_>>();
            index.runs.extend(runs.iter().enumerate().map(|(at, run)| (run.run_id.clone(), (id.clone(), at))));
            let AnchoredAgent { history, usage, newest_root, .. } = agent.clone();
            let is_open = runs.last().is_some_and(|newest| open.contains(&newest.run_id));
            let history = if is_open { History::default() } else { history };
            index.agents.insert(id.clone(), AgentIndex { history, runs, usage, newest_root, above: None });
        }
        anchor.open.iter().cloned().for_each(|run| index.reopen(run, &anchored));
        index.anchored = anchored;
        index
    }

    /// Returns the index at the newest snapshot before the entry `seq`; empty if there is no
    /// snapshot.
    ///
    /// # Errors
    /// Those of [`Journal::read`] and [`Journal::anchor`].
    pub(super) async fn anchored(journal: &(impl Journal + ?Sized), session: &str, seq: u64) -> Result<Self> {
        let (mut chain, mut next) = (Vec::new(), journal.anchor(session).await?);
        while let Some(entry) = next {
            let EntryBody::Anchored { anchor } = &entry.body else { return Ok(Self::default()) };
            next = match anchor.base.filter(|base| *base < entry.seq) {
                None => None,
                Some(base) => match journal.read(session, base - 1, 1).await?.pop().filter(|it| it.seq == base) {
                    None => return Ok(Self::default()), // the snapshot that it extends is missing
                    found => found,
                },
            };
            chain.extend((entry.seq < seq).then_some(entry));
        }
        Ok(Self::since(chain.iter().rev().map(|entry| &**entry)))
    }

    /// Applies an anchor. An anchor whose writer did not know the newest one is ignored.
    pub(super) fn take_anchor(&mut self, seq: u64, anchor: &Anchor) {
        if anchor.base.is_some_and(|base| base != self.anchored.seq) {
            return;
        }
        let mut anchored = std::mem::take(&mut self.anchored);
        anchored.go_on(seq, anchor, |id| self.conversation(id));
        self.anchored = anchored;
    }

    /// The closed part of an agent's conversation.
    fn conversation(&self, id: &str) -> Option<&History> {
        let agent = self.agents.get(id)?;
        let newest = agent.runs.last().and_then(|run| self.states.get(&run.run_id));
        Some(newest.map_or(&agent.history, |state| &state.history))
    }

    /// True if the index includes every run of the session, including those before the newest
    /// anchor.
    pub fn is_whole(&self) -> bool {
        self.since == 0
    }

    /// True unless an entry since the anchor undid a run from before it: then the session must be
    /// read from its beginning.
    pub fn is_sound(&self) -> bool {
        !self.reached_back
    }

    /// Returns the next snapshot to write, so that later reads can start there. Returns `None`
    /// until `least` entries have been added since the last snapshot, and if the snapshot could not
    /// be read back.
    pub fn anchor(&self, least: u64) -> Option<Anchor> {
        if self.info.entries.saturating_sub(self.anchored.entries) < least {
            return None;
        }
        let can_go_on = |run: &&Arc<str>| self.states.get(run).is_some_and(RunState::is_open);
        let newest = self.agents.values().filter_map(|agent| agent.newest_root.as_ref()).filter(can_go_on);
        let open = self.states.of_trees(&newest.collect::<BTreeSet<_>>());
        let is_open = |run: &RunRecord| open.iter().any(|state| state.ids.run_id == run.run_id);
        let agents = self.agents.iter().map(|(id, agent)| (id.clone(), self.anchored_agent(id, agent, is_open)));
        let agents: BTreeMap<_, _> = agents.collect();
        let extends = self.anchored.seq > 0 && !self.anchored.is_used_up(&agents);
        let agents = match extends {
            true => agents
                .into_iter()
                .filter_map(|(id, agent)| Some((id.clone(), self.anchored.change(&id, agent)?)))
                .collect(),
            false => agents,
        };
        let anchor = Box::new(Anchor {
            newest: self.newest.clone()?,
            base: extends.then_some(self.anchored.seq),
            info: self.info.clone(),
            globals: self.globals.clone(),
            agents,
            open: open.into_iter().map(|state| self.open_run(state)).collect(),
        });
        // Embedding may exceed serde's recursion limit, so verify that it can be read back.
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
        let open = agent.runs.last().filter(|run| is_open(run)).and_then(|run| self.states.get(&run.run_id));
        AnchoredAgent {
            kept: 0,
            history: open.map_or_else(|| self.history(id), |state| state.history.clone()),
            usage: agent.usage,
            runs: agent.runs.iter().enumerate().filter(is_kept).map(|(_, run)| run.outline()).collect(),
            newest_root: agent.newest_root.clone(),
        }
    }

    /// True if no later run of its agent has begun.
    fn is_newest_of_its_agent(&self, state: &RunState) -> bool {
        let newest = self.agents.get(&state.ids.agent_id).and_then(|agent| agent.runs.last());
        newest.is_some_and(|newest| newest.run_id == state.ids.run_id)
    }

    fn open_run(&self, state: &RunState) -> OpenRun {
        let attempt = match self.record(&state.ids.run_id).map(|record| &record.liveness) {
            Some(Liveness::Open { attempt }) => attempt.clone(),
            _ => None,
        };
        let mut kept = state.clone();
        if self.is_newest_of_its_agent(state) {
            kept.history = History::default();
        }
        OpenRun { state: kept, run_meta: state.run_meta.clone(), attempt }
    }

    /// Restores a run that was open when the anchor was written.
    fn reopen(&mut self, OpenRun { mut state, run_meta, attempt }: OpenRun, anchored: &Anchored) {
        state.run_meta = run_meta;
        if let Some(agent) = anchored.agents.get(&state.ids.agent_id).filter(|_| self.is_newest_of_its_agent(&state)) {
            state.history = agent.history.clone();
        }
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
    /// The record without the fields that only undoing the run needs.
    fn outline(&self) -> Self {
        Self { before: History::default(), liveness: Liveness::Unknown, ..self.clone() }
    }

    /// The record of a run that cannot be resumed.
    fn over(mut self) -> Self {
        let why = if self.undone { "the run was undone" } else { "the run is finished" };
        self.tell(self.liveness_seq, Liveness::Over(why));
        self
    }
}
