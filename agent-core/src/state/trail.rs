//! What a run's state remembers of its entries beside what a checkpoint holds.

use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
};

use serde::{Deserialize, Serialize};

use super::{BackgroundRun, CallState, Phase, RunState, RunStatus};
use crate::{amounts::Amounts, usage::Usage};

/// How a run came to stand where it stands, as far as the next entry needs it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Trail {
    /// How the run's newest attempt ended; none while it is under way.
    pub(crate) status: Option<RunStatus>,
    /// True if the run was undone.
    pub(crate) undone: bool,
    /// The tools as which begun calls of the open turn will count.
    pub(crate) counted: BTreeMap<Arc<str>, Arc<str>>,
    /// Allowance set aside for model calls under way, by the attempt's number for them: used, if it is never settled.
    pub(crate) reserved: BTreeMap<u32, Amounts>,
    /// The child runs, in the order in which they were linked.
    pub(crate) children: Vec<Child>,
    /// What child runs used whose states are gone: they had ended when the run was adopted.
    pub(crate) gone: Usage,
    /// How many of the children belong to earlier turns: a call of the open turn may have the id of a call of an earlier one.
    pub(crate) earlier: usize,
    /// The children in the background of whose end the run was told.
    pub(crate) reported: HashSet<Arc<str>>,
    /// When the newest entry was written.
    pub(crate) last_time: u64,
}

/// A child run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Child {
    /// The call that started it.
    pub(crate) call_id: Arc<str>,
    pub(crate) key: String,
    pub(crate) run: Arc<str>,
    pub(crate) background: bool,
}

impl RunState {
    /// Takes where the child runs stand out of a checkpoint, with what they used: they are states of their own now.
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

    /// The begun calls of the open turn count as the tools that they name, when they are answered.
    pub(crate) fn count_open_calls(&mut self) {
        let Phase::Tools(turn) = &self.phase else { return };
        for call in turn.message.calls() {
            if self.finished.contains_key(&*call.id) || self.begun.contains_key(&*call.id) {
                self.trail.counted.insert(call.id.clone(), call.name.clone());
            }
        }
    }
}

/// Two runs that stand at the same place are the same, however they came there.
impl PartialEq for Trail {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}
