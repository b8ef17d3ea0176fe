//! Import of a run that is persisted elsewhere: converts its checkpoint to journal entries.

use std::{collections::BTreeMap, sync::Arc};

use super::RunLog;
use crate::{
    history::History,
    journal::{Entry, EntryBody},
    state::{CallState, PendingTurn, Phase, RunState, RunStatus},
};

impl RunLog {
    /// Records the checkpoint of a run that is not in this journal, including its suspended
    /// descendants. The run must have been [adopted](Self::adopt) before; from now on it can be
    /// recovered from this journal.
    pub fn import(&self, checkpoint: &RunState) {
        self.import_run(checkpoint.clone());
    }

    /// Marks the run as undone in the journal, then [imports](Self::import) the checkpoint.
    pub fn supersede(&self, checkpoint: &RunState) {
        let run = &checkpoint.ids.run_id;
        self.record_imported(run, EntryBody::Undone { before_run: run.clone() });
        self.import(checkpoint);
    }

    /// Imports a child's checkpoint if the child ran outside this tree.
    pub(crate) fn import_child(&self, child: &RunState) {
        if self.0.tree.knows(child) {
            return;
        }
        self.0.tree.adopt(child);
        if child.ids.parent_run_id.as_ref() == Some(&self.0.ids.run_id) {
            self.import(child);
        }
    }

    fn import_run(&self, mut state: RunState) {
        let run = state.ids.run_id.clone();
        let record = |body| self.record_imported(&run, body);
        record(EntryBody::RunStarted { ids: Arc::new(state.ids.clone()), fingerprint: state.fingerprint.clone() });
        let history = std::mem::take(&mut state.history);
        record(EntryBody::HistoryReplaced { reason: "resumed".into(), before: 0, history });
        let globals = state.globals.take().into_iter().flatten().map(|(key, value)| (key, Some(value)));
        let (kept, globals) = (std::mem::take(&mut state.state), globals.collect::<BTreeMap<_, _>>());
        if !kept.is_empty() || !globals.is_empty() {
            record(EntryBody::StateChanged { state: kept, globals });
        }
        let children = state.adopt_children();
        let (earlier, of_step) = state.run_meta.children.split_at(state.run_meta.earlier);
        earlier.iter().for_each(|child| record(EntryBody::linked(child.clone())));
        match &state.phase {
            Phase::Tools(turn) => turn_entries(state.step, turn).into_iter().for_each(record),
            Phase::Ended(exit) => {
                let (status, answer) = (RunStatus::Finished(exit.reason.clone()), Some(exit.answer.as_str().into()));
                record(EntryBody::RunEnded { status, usage: state.usage.into(), error: None, answer });
            }
            _ => {}
        }
        of_step.iter().for_each(|child| record(EntryBody::linked(child.clone()))); // behind the turn that they belong to
        children.into_iter().for_each(|child| self.import_run(child));
        record(EntryBody::Imported { state: Box::new(state.without_children()) });
    }

    fn record_imported(&self, run: &Arc<str>, body: EntryBody) {
        let entry = Entry::new(run.clone(), self.0.tree.now(), body);
        self.open().pending.push(entry);
    }
}

/// Entries that describe an open turn.
fn turn_entries(step: u32, turn: &PendingTurn) -> Vec<EntryBody> {
    let accepted = EntryBody::ModelAccepted { step, message: Some(turn.message.clone()), exit: None };
    let answered = turn.message.calls().zip(&turn.calls).filter_map(|(call, pending)| match &pending.state {
        CallState::Done(output) => {
            let (call_id, name) = (call.id.clone(), call.name.clone());
            Some(EntryBody::ToolAnswered { call_id, name, output: Some(output.clone()) })
        }
        _ => None,
    });
    std::iter::once(accepted).chain(answered).collect()
}

impl RunState {
    /// The part of the state that no other entry describes, once the children are [taken
    /// out](Self::adopt_children).
    fn without_children(mut self) -> Self {
        self.tree_usage = self.usage;
        self.tree_usage += self.run_meta.gone;
        if let Phase::Tools(_) = self.phase {
            self.phase = Phase::default(); // described by the turn's own entries
        }
        Self { history: History::default(), run_meta: Default::default(), ..self }
    }
}
