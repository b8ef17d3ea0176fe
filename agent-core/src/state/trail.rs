//! Bookkeeping of a run's state that a checkpoint does not contain.

use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
};

use serde::{Deserialize, Serialize};

use super::{BackgroundRun, CallState, Phase, RunState, RunStatus};
use crate::{amounts::Amounts, usage::Usage};

/// Bookkeeping that only the application of further entries needs.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Trail {
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
    pub(crate) children: Vec<Child>,
    /// Usage of child runs whose states were removed: they had ended when the run was adopted.
    pub(crate) gone: Usage,
    /// Number of children that belong to earlier turns: call ids may repeat between turns.
    pub(crate) earlier: usize,
    /// Background children whose end was reported to the run.
    pub(crate) reported: HashSet<Arc<str>>,
    /// Time of the newest entry.
    pub(crate) last_time: u64,
}

/// A link to a child run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Child {
    /// Id of the call that started it.
    pub(crate) call_id: Arc<str>,
    pub(crate) key: String,
    pub(crate) run: Arc<str>,
    pub(crate) background: bool,
}

impl RunState {
    /// Moves the states of the child runs out of a checkpoint, with their usage: they become
    /// separate states.
    pub(crate) fn adopt_children(&mut self) -> Vec<Self> {
        let states = self.take_children();
        self.trail.gone = self.tree_usage;
        self.trail.gone -= self.usage;
        for child in &states {
            self.trail.gone -= child.tree_usage;
            self.spent = self.spent.minus(child.spent);
        }
        states
    }

    fn take_children(&mut self) -> Vec<Self> {
        let (mut children, mut states) = (Vec::new(), Vec::new());
        for background in std::mem::take(&mut self.background) {
            let BackgroundRun { key, call_id, run, checkpoint } = background;
            children.push(Child { call_id, key, run, background: true });
            states.extend(checkpoint.map(|state| *state));
        }
        self.trail.earlier = children.len();
        if let Phase::Tools(turn) = &mut self.phase {
            for pending in &mut turn.calls {
                if let CallState::Suspended { child } = &mut pending.state
                    && let Some(state) = child.take()
                {
                    let (key, run) = (state.ids.agent.to_string(), state.ids.run_id.clone());
                    children.push(Child { call_id: pending.call_id.clone(), key, run, background: false });
                    states.push(*state);
                }
            }
        }
        self.trail.children = children;
        self.count_open_calls();
        states
    }

    /// Registers the tool names of begun calls in the open turn, for counting when they are
    /// answered.
    pub(crate) fn count_open_calls(&mut self) {
        let Phase::Tools(turn) = &self.phase else { return };
        for call in turn.message.calls() {
            if self.finished.contains_key(&*call.id) || self.begun.contains_key(&*call.id) {
                self.trail.counted.insert(call.id.clone(), call.name.clone());
            }
        }
    }
}

/// Always equal: equality of states ignores their bookkeeping.
impl PartialEq for Trail {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}
