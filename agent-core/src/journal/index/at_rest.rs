//! Self-contained checkpoints: the state of a run together with its descendants.

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    mem,
    sync::Arc,
};

use crate::{
    amounts::Amounts,
    journal::Entry,
    state::{
        BackgroundRun, CallState, ChildKey, ChildRun, Exit, HOOK_OF_STEP, PendingTurn, Phase, RunMeta, RunState,
        RunStatus,
    },
    usage::Usage,
};

/// States of runs, by id. There are few, and one is looked up for each entry: hashing would cost
/// more than comparing.
#[derive(Clone, Debug, Default)]
pub(super) struct States(BTreeMap<Arc<str>, Box<RunState>>);

impl States {
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn get(&self, run: &str) -> Option<&RunState> {
        self.0.get(run).map(|state| &**state)
    }

    pub(super) fn get_mut(&mut self, run: &str) -> Option<&mut RunState> {
        self.0.get_mut(run).map(|state| &mut **state)
    }

    pub(super) fn insert(&mut self, state: RunState) {
        self.0.insert(state.ids.run_id.clone(), Box::new(state));
    }

    /// Inserts a run that begins. If it begins again, its earlier usage still counts.
    pub(super) fn insert_again(&mut self, mut state: RunState) {
        if let Some(before) = self.0.get(&state.ids.run_id).filter(|before| !before.run_meta.undone) {
            state.run_meta.gone = self.tree_usage(before);
            state.spent = self.tree_spent(before);
        }
        self.insert(state);
    }

    /// Inserts a run that resumes from `checkpoint`. If it resumes again, its usage since the
    /// checkpoint still counts.
    pub(super) fn insert_from(&mut self, mut state: RunState, checkpoint: &RunState) {
        if let Some(before) = self.0.get(&state.ids.run_id).filter(|before| !before.run_meta.undone) {
            let mut since = self.tree_usage(before);
            since -= checkpoint.tree_usage;
            state.run_meta.gone += since;
            state.spent = state.spent.plus(self.tree_spent(before).minus(checkpoint.spent));
        }
        self.insert(state);
    }

    /// Applies the next entry of a run. Questions that a child run no longer asks are removed from
    /// its ancestors too.
    pub(super) fn apply(&mut self, entry: &Entry) {
        let Some(state) = self.0.get_mut(&entry.run) else { return };
        let asked: Vec<_> = state.questions.iter().map(|question| question.digest.clone()).collect();
        state.apply(entry);
        let over = |digest: &String| !digest.is_empty() && state.questions.iter().all(|still| still.digest != *digest);
        let over: Vec<_> = asked.into_iter().filter(over).collect();
        let mut above = state.ids.parent_run_id.clone().filter(|_| !over.is_empty());
        while let Some(state) = above.and_then(|above| self.0.get_mut(&above)) {
            state.questions.retain(|question| !over.contains(&question.digest));
            above = state.ids.parent_run_id.clone();
        }
    }

    /// The states of all runs in the trees with these root runs.
    pub(super) fn of_trees(&self, tops: &BTreeSet<&Arc<str>>) -> Vec<&RunState> {
        self.0.values().map(|state| &**state).filter(|state| tops.contains(top(state))).collect()
    }

    /// Removes and returns the states of all runs in the trees whose root run `is_top` accepts.
    pub(super) fn take_trees(&mut self, is_top: impl Fn(&str) -> bool) -> Vec<RunState> {
        let (taken, left): (BTreeMap<_, _>, _) =
            mem::take(&mut self.0).into_iter().partition(|(_, state)| is_top(top(state)));
        self.0 = left;
        taken.into_values().map(|state| *state).collect()
    }

    /// Removes the child runs that ended in closed turns of a run, with their descendants. No call
    /// waits for them any more, so the run takes over their usage as its own.
    pub(super) fn take_ended_descendants(&mut self, run: &str) -> Vec<RunState> {
        let Some(state) = self.get_mut(run).filter(|state| !state.run_meta.children.is_empty()) else {
            return Vec::new();
        };
        let (children, reported) = (mem::take(&mut state.run_meta.children), mem::take(&mut state.run_meta.reported));
        let (mut kept, mut ended) = (Vec::<ChildRun>::new(), HashSet::new());
        for child in children {
            if !child.background && self.get(&child.run).is_none() {
                continue; // it never began, and no call waits for it any more
            }
            // A background child that did not begin stays linked, unless its call started another
            // one.
            let stands_in =
                |other: &ChildRun| other.background && other.is_same(&child) && self.get(&other.run).is_none();
            let is_told = !child.background || reported.contains(&child.run);
            let is_over = is_told && !child.is_of_beginning() && self.has_ended(&child.run);
            match is_over && !kept.iter().any(stands_in) {
                true => drop(ended.insert(child.run)),
                false => kept.push(child),
            }
        }
        let (mut used, mut spent, mut taken) = (Usage::default(), Amounts::none(), Vec::new());
        for child in ended.iter().filter_map(|run| self.get(run)) {
            used += self.tree_usage(child);
            spent = spent.plus(self.tree_spent(child));
        }
        ended.iter().for_each(|run| self.take_with_descendants(run, &mut taken));
        if let Some(state) = self.get_mut(run) {
            state.run_meta.gone += used;
            state.spent = state.spent.plus(spent);
            state.run_meta.reported = reported.into_iter().filter(|run| !ended.contains(run)).collect();
            state.run_meta.earlier = kept.len();
            state.run_meta.children = kept;
        }
        taken
    }

    /// True if a run and all its descendants have ended permanently.
    fn has_ended(&self, run: &str) -> bool {
        let is_over =
            |status: &RunStatus| matches!(status, RunStatus::Finished(_) | RunStatus::Failed | RunStatus::Cancelled);
        self.get(run).is_some_and(|state| {
            state.run_meta.status.as_ref().is_some_and(is_over)
                && self.children(state).all(|child| self.has_ended(&child.ids.run_id))
        })
    }

    fn take_with_descendants(&mut self, run: &str, taken: &mut Vec<RunState>) {
        let Some(state) = self.0.remove(run) else { return };
        state.run_meta.children.iter().for_each(|child| self.take_with_descendants(&child.run, taken));
        taken.push(*state);
    }

    /// The run's checkpoint, including those of children its open calls or background tasks depend
    /// on.
    pub(super) fn at_rest(&self, state: &RunState) -> RunState {
        let mut rest = state.clone();
        rest.run_meta = RunMeta::default();
        rest.tree_usage = self.tree_usage(state);
        rest.spent = self.tree_spent(state);
        rest.phase = match (&state.run_meta.status, &state.phase) {
            (Some(RunStatus::Finished(reason)), Phase::Tools(_)) => Phase::Ended(Exit::new(reason.clone(), "")),
            _ => self.phase(state),
        };
        rest.background = self.background(state);
        rest.children = self.children_at_rest(state);
        rest
    }

    /// The sub-agents that open calls and hooks get back when they are entered again, with their
    /// checkpoints.
    fn children_at_rest(&self, state: &RunState) -> Vec<ChildRun> {
        if matches!(state.run_meta.status, Some(RunStatus::Finished(_))) {
            return Vec::new();
        }
        let turn = state.open_turn();
        let is_open = |id: &str| turn.is_some_and(|turn| turn.open_calls().any(|open| open == id));
        let of_hook = |id: &str| id.starts_with(HOOK_OF_STEP);
        let children = state.children_of_step().filter(|child| {
            (of_hook(&child.call_id) || is_open(&child.call_id)) && !state.has_left_to_background(child)
        });
        children.map(|child| self.with_checkpoint(child)).collect()
    }

    /// The sub-agent that `key` names, with its checkpoint: the newest that began, or else one that
    /// was linked and did not begin.
    pub(super) fn child(&self, state: &RunState, key: &ChildKey) -> Option<ChildRun> {
        let is_it = |child: &&ChildRun| child.is(key) && !state.has_left_to_background(child);
        let found: Vec<_> = state.children_of_step().filter(is_it).collect();
        let began = found.iter().rev().find(|child| self.0.contains_key(&child.run));
        began.or(found.last()).map(|child| self.with_checkpoint(child))
    }

    fn with_checkpoint(&self, child: &ChildRun) -> ChildRun {
        let checkpoint = self.get(&child.run).map(|state| Box::new(self.at_rest(state)));
        ChildRun { checkpoint, ..child.clone() }
    }

    /// The run's phase. Open calls that have sub-agents are suspended.
    pub(super) fn phase(&self, state: &RunState) -> Phase {
        match &state.phase {
            Phase::Tools(turn) => Phase::Tools(self.with_children(state, turn)),
            phase => phase.clone(),
        }
    }

    fn children<'a>(&'a self, state: &'a RunState) -> impl Iterator<Item = &'a RunState> {
        state.run_meta.children.iter().filter_map(|child| self.get(&child.run))
    }

    /// Usage of the run and all its descendants.
    pub(super) fn tree_usage(&self, state: &RunState) -> Usage {
        let mut all = state.usage;
        all += state.run_meta.gone;
        self.children(state).for_each(|child| all += self.tree_usage(child));
        all
    }

    fn tree_spent(&self, state: &RunState) -> Amounts {
        let own = state.run_meta.reserved.values().fold(state.spent, |all, reserved| all.plus(*reserved));
        self.children(state).fold(own, |all, child| all.plus(self.tree_spent(child)))
    }

    fn with_children(&self, state: &RunState, turn: &PendingTurn) -> PendingTurn {
        let mut turn = turn.clone();
        for call in turn.calls.iter_mut().filter(|call| !matches!(call.state, CallState::Done(_))) {
            let is_its = |child: &ChildRun| {
                child.is_of_call(&call.call_id)
                    && self.0.contains_key(&child.run)
                    && !state.has_left_to_background(child)
            };
            if state.children_of_step().any(is_its) {
                call.state = CallState::Suspended { child: None };
            }
        }
        turn
    }

    /// Background sub-agents whose end was not reported to the run. A call without a result resumes
    /// its own sub-agent itself.
    pub(super) fn background(&self, state: &RunState) -> Vec<BackgroundRun> {
        let is_open = |at: usize, call_id: &Arc<str>| {
            let turn = state.open_turn().filter(|_| at >= state.run_meta.earlier);
            !state.finished.contains_key(&**call_id)
                && turn.is_some_and(|turn| turn.open_calls().any(|open| *open == **call_id))
        };
        let children = &state.run_meta.children;
        let mut all = Vec::new();
        for (at, child) in children.iter().enumerate() {
            let began = self.get(&child.run);
            let again = || children[at + 1..].iter().any(|later| later.is_same(child));
            if child.background
                && !state.run_meta.reported.contains(&child.run)
                && !is_open(at, &child.call_id)
                && (began.is_some() || !again())
            {
                let checkpoint = began.map(|began| Box::new(self.at_rest(began)));
                all.push(BackgroundRun::new(&child.key, child.call_id.clone(), child.run.clone(), checkpoint));
            }
        }
        all
    }
}

/// Id of the root run of a run's tree.
fn top(state: &RunState) -> &Arc<str> {
    match &state.ids.parent_run_id {
        Some(_) => &state.ids.root_run_id,
        None => &state.ids.run_id,
    }
}
