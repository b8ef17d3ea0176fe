//! A place from which a session is read without what is before it: [`Anchor`].

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
    state::{RunState, Trail, is_default},
    usage::Usage,
};

/// What a session's entries up to one of them mean for those that follow: a process that sees the session for the first time
/// reads this and what came since, however long the session is.
///
/// It goes on from the anchor before it, and holds what is new since then: of each agent that did anything, the messages that its
/// conversation has more. So what all anchors of a session hold is written once.
///
/// Nothing is lost by it, and nothing is true only because it says so: what anchors do not hold (older runs, and what undoing
/// them brings back) is read from the entries before, and without anchors all of it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Anchor {
    /// The newest entry that it tells of: its number, run and time.
    newest: (u64, Arc<str>, u64),
    /// The number of the anchor from which it goes on; none if it stands for itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    base: Option<u64>,
    info: SessionInfo,
    globals: BTreeMap<String, Value>,
    /// Those that are not as the anchor before has them.
    agents: BTreeMap<Arc<str>, AnchoredAgent>,
    /// The newest runs of agents that can go on, and their descendants.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    open: Vec<OpenRun>,
}

impl Anchor {
    /// The number of the anchor from which it goes on, without which it cannot be read; none if it stands for itself.
    pub fn base(&self) -> Option<u64> {
        self.base
    }
}

/// One agent, as an anchor holds it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct AnchoredAgent {
    /// How many messages the conversation has from the anchor before: all that it had there, or none.
    #[serde(default, skip_serializing_if = "is_default")]
    kept: usize,
    /// The messages that follow. If the newest run is open, they are those of its state.
    history: History,
    usage: Usage,
    /// The newest run at the top of a tree, the newest of all, and the open ones, each once.
    runs: Vec<RunRecord>,
    newest_root: Option<Arc<str>>,
}

/// All that the next entry of a run needs to know of those before.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct OpenRun {
    /// Without its conversation if it is the newest run of its agent, which has it.
    state: RunState,
    trail: Trail,
    /// The nonce of its newest attempt; none if it did not stop yet.
    attempt: Option<Arc<str>>,
}

/// What the newest anchor says with all those that it goes on from.
#[derive(Clone, Debug, Default)]
pub(super) struct Anchored {
    /// The number of its entry; 0 before the first.
    seq: u64,
    /// How many entries there were.
    entries: u64,
    /// All of them, with their whole conversations.
    agents: BTreeMap<Arc<str>, AnchoredAgent>,
}

impl Anchored {
    /// Takes the next anchor. Conversations that `known` has are shared with it, so that what follows is found to continue them.
    fn go_on<'a>(&mut self, seq: u64, anchor: &Anchor, known: impl Fn(&str) -> Option<&'a History>) {
        if anchor.base.is_none() {
            self.agents.clear();
        }
        for (id, said) in &anchor.agents {
            let earlier = self.agents.remove(id).map(|agent| agent.history).filter(|_| said.kept > 0);
            let earlier = earlier.unwrap_or_default();
            let whole = known(id).and_then(|known| shared(known, &earlier, &said.history));
            let history = whole.unwrap_or_else(|| earlier.joined(&said.history));
            self.agents.insert(id.clone(), AnchoredAgent { kept: 0, history, ..said.clone() });
        }
        (self.seq, self.entries) = (seq, anchor.info.entries);
    }

    /// The agent as it is now, without what was anchored; none if all of it was.
    fn change(&self, id: &str, mut agent: AnchoredAgent) -> Option<AnchoredAgent> {
        let Some(known) = self.agents.get(id) else { return Some(agent) };
        // One that was made in another way is written as a whole.
        let Some(since) = agent.history.since(&known.history) else { return Some(agent) };
        let Ok(since) = History::from_messages(since.cloned()) else { return Some(agent) };
        let is_known = since.is_empty()
            && (agent.usage, &agent.runs, &agent.newest_root) == (known.usage, &known.runs, &known.newest_root);
        (agent.kept, agent.history) = (known.history.len(), since);
        (!is_known).then_some(agent)
    }
}

/// The beginning of `known` that is `earlier` and what was `said` since, if it begins so.
fn shared(known: &History, earlier: &History, said: &History) -> Option<History> {
    let len = earlier.len() + said.len();
    let is_it = known.len() >= len && known.since(earlier)?.take(said.len()).eq(said.iter());
    is_it.then(|| known.first(len))
}

impl SessionIndex {
    /// The index that the newest anchor among these entries stands for: they are anchors of one session, oldest first, from one
    /// that stands for itself on. Older runs are not in it: it [is not whole](Self::is_whole). Without an anchor it is empty.
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

    /// The index as the newest anchor that stands before the entry `seq` has it; empty if there is none.
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
                    None => return Ok(Self::default()), // nobody knows what it goes on from
                    found => found,
                },
            };
            chain.extend((entry.seq < seq).then_some(entry));
        }
        Ok(Self::since(chain.iter().rev().map(|entry| &**entry)))
    }

    /// Takes an anchor. One that was written by somebody who did not know the newest is not gone on from.
    pub(super) fn take_anchor(&mut self, seq: u64, anchor: &Anchor) {
        if anchor.base.is_some_and(|base| base != self.anchored.seq) {
            return;
        }
        let mut anchored = std::mem::take(&mut self.anchored);
        anchored.go_on(seq, anchor, |id| self.conversation(id));
        self.anchored = anchored;
    }

    /// The conversation of an agent as far as it is closed.
    fn conversation(&self, id: &str) -> Option<&History> {
        let agent = self.agents.get(id)?;
        let newest = agent.runs.last().and_then(|run| self.states.get(&run.run_id));
        Some(newest.map_or(&agent.history, |state| &state.history))
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
    /// last one. None too if it could not be read back.
    pub fn anchor(&self, least: u64) -> Option<Anchor> {
        if self.info.entries.saturating_sub(self.anchored.entries) < least {
            return None;
        }
        let can_go_on = |run: &&Arc<str>| self.states.get(run).is_some_and(RunState::is_open);
        let newest = self.agents.values().filter_map(|agent| agent.newest_root.as_ref()).filter(can_go_on);
        let open = self.states.of_trees(&newest.collect::<BTreeSet<_>>());
        let is_open = |run: &RunRecord| open.iter().any(|state| state.ids.run_id == run.run_id);
        let agents = self.agents.iter().filter_map(|(id, agent)| {
            Some((id.clone(), self.anchored.change(id, self.anchored_agent(id, agent, is_open))?))
        });
        let anchor = Box::new(Anchor {
            newest: self.newest.clone()?,
            base: Some(self.anchored.seq).filter(|seq| *seq > 0),
            info: self.info.clone(),
            globals: self.globals.clone(),
            agents: agents.collect(),
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
        let open = agent.runs.last().filter(|run| is_open(run)).and_then(|run| self.states.get(&run.run_id));
        AnchoredAgent {
            kept: 0,
            history: open.map_or_else(|| self.history(id), |state| state.history.clone()),
            usage: agent.usage,
            runs: agent.runs.iter().enumerate().filter(is_kept).map(|(_, run)| run.outline()).collect(),
            newest_root: agent.newest_root.clone(),
        }
    }

    /// True if no run of its agent began after this one.
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
        OpenRun { state: kept, trail: state.trail.clone(), attempt }
    }

    /// Takes a run that an anchor left open.
    fn reopen(&mut self, OpenRun { mut state, trail, attempt }: OpenRun, anchored: &Anchored) {
        state.trail = trail;
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
