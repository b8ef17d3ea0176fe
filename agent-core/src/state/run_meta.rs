//! Bookkeeping of a run's state that a checkpoint does not contain.

use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
};

use serde::{Deserialize, Serialize};

use super::{BackgroundRun, CallState, ChildRun, PendingTurn, Phase, RunState, RunStatus};
use crate::{amounts::Amounts, usage::Usage};

/// Bookkeeping that only the application of further entries needs.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct RunMeta {
    /// Status of the newest attempt; `None` while it is running.
    pub(crate) status: Option<RunStatus>,
    /// True if the run was undone.
    pub(crate) undone: bool,
    /// Names of the tools of begun calls in the open turn, counted when the calls are answered.
    pub(crate) counted: BTreeMap<Arc<str>, Arc<str>>,
    /// Reservations of running model calls, by the attempt's call number; they count as used if
    /// they are never settled.
    pub(crate) reserved: BTreeMap<u32, Amounts>,
    /// Child runs, in the order in which they were linked.
    pub(crate) children: Vec<ChildRun>,
    /// Usage of child runs whose states were removed: they had ended when the run was adopted.
    pub(crate) gone: Usage,
    /// Number of children that belong to earlier turns: call ids may repeat between turns.
    pub(crate) earlier: usize,
    /// Background children whose end was reported to the run.
    pub(crate) reported: HashSet<Arc<str>>,
    /// Time of the newest entry.
    pub(crate) last_time: u64,
}

impl RunState {
    /// Moves the states of the child runs out of a checkpoint, with their usage: they become
    /// separate states.
    pub(crate) fn adopt_children(&mut self) -> Vec<Self> {
        let states = self.take_children();
        self.run_meta.gone = self.tree_usage;
        self.run_meta.gone -= self.usage;
        for child in &states {
            self.run_meta.gone -= child.tree_usage;
            self.spent = self.spent.minus(child.spent);
        }
        states
    }

    fn take_children(&mut self) -> Vec<Self> {
        let (mut children, mut states) = (Vec::new(), Vec::new());
        for background in std::mem::take(&mut self.background) {
            let BackgroundRun { key, call_id, run, checkpoint } = background;
            children.push(ChildRun { background: true, ..ChildRun::new(call_id, key, run) });
            states.extend(checkpoint.map(|state| *state));
        }
        self.run_meta.earlier = children.len();
        for mut child in std::mem::take(&mut self.children) {
            states.extend(child.checkpoint.take().map(|state| *state));
            children.push(child);
        }
        if let Phase::Tools(turn) = &mut self.phase {
            for pending in &mut turn.calls {
                if let CallState::Suspended { child } = &mut pending.state
                    && let Some(state) = child.take()
                {
                    // Written by a release that did not keep the key.
                    let run = state.ids.run_id.clone();
                    children.push(ChildRun::new(pending.call_id.clone(), String::new(), run));
                    states.push(*state);
                }
            }
        }
        self.run_meta.children = children;
        self.count_open_calls();
        states
    }

    /// The turn whose calls are not all answered.
    pub(crate) fn open_turn(&self) -> Option<&PendingTurn> {
        match &self.phase {
            Phase::Tools(turn) => Some(turn),
            _ => None,
        }
    }

    /// The sub-agents of the step, and those of the whole run. A call may have the id of a call of
    /// an earlier turn.
    pub(crate) fn children_of_step(&self) -> impl DoubleEndedIterator<Item = &ChildRun> {
        let (earlier, step) = self.run_meta.children.split_at(self.run_meta.earlier);
        earlier.iter().filter(|child| child.is_of_beginning()).chain(step)
    }

    /// True for a sub-agent in the background whose call has its result: the run continues with it,
    /// not the call.
    pub(crate) fn has_left_to_background(&self, child: &ChildRun) -> bool {
        child.background && self.finished.contains_key(&*child.call_id)
    }

    /// Registers the tool names of begun calls in the open turn, for counting when they are
    /// answered.
    pub(crate) fn count_open_calls(&mut self) {
        let Phase::Tools(turn) = &self.phase else { return };
        for call in turn.message.calls() {
            if self.finished.contains_key(&*call.id) || self.begun.contains_key(&*call.id) {
                self.run_meta.counted.insert(call.id.clone(), call.name.clone());
            }
        }
    }
}

/// Always equal: equality of states ignores their bookkeeping.
impl PartialEq for RunMeta {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}
