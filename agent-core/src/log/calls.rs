//! Storage and state writes of running tool calls, persisted together with the call's result.

use std::{
    collections::BTreeMap,
    sync::{Arc, MutexGuard, PoisonError},
};

use super::{Open, RunLog};
use crate::storage::{CallStorage, NewValue};

impl RunLog {
    /// Returns the storage of a running call. All attempts of the call share it.
    pub(crate) fn call_storage(&self, call_id: &Arc<str>, make: impl FnOnce() -> CallStorage) -> Arc<CallStorage> {
        self.calls().entry(call_id.clone()).or_insert_with(|| Arc::new(make())).clone()
    }

    /// Returns the values that a call changed and that are not persisted yet: those of the shared
    /// storage, then those of the state.
    pub(super) fn call_changes(&self, call_id: &str) -> (Vec<NewValue>, Vec<NewValue>) {
        let call = self.calls().get(call_id).cloned();
        call.map(|call| call.changes().values()).unwrap_or_default()
    }

    /// Records a call's result and commits the call's changes as one atomic step. If there are
    /// changes, they are flushed at once: a concurrent flush by another run of the tree sees either
    /// both the change and the entry, or neither.
    pub(super) fn record_result(&self, call_id: &str, record: impl FnOnce(&mut Open)) {
        let call = self.calls().get(call_id).cloned();
        self.record_with_changes(call.as_deref(), false, record);
    }

    /// Like [`record_result`](Self::record_result), and closes the call's storage: the call is
    /// answered, and its entry is recorded as a [closing entry](Self::record_closed).
    pub(super) fn record_final(&self, call_id: &str, record: impl FnOnce(&mut Open)) {
        let call = self.calls().remove(call_id);
        call.iter().for_each(|call| call.end());
        self.record_with_changes(call.as_deref(), true, record);
    }

    fn record_with_changes(&self, call: Option<&CallStorage>, closes: bool, record: impl FnOnce(&mut Open)) {
        let mut record = Some(record);
        while let Some(todo) = record.take() {
            let changes = call.map(CallStorage::changes).filter(|changes| !changes.is_empty());
            let Some(changes) = changes else {
                return if closes { self.record_closed(todo) } else { todo(&mut self.open()) };
            };
            let keep = |open: &mut Open| match changes.keep() {
                true => {
                    todo(open);
                    None
                }
                false => Some(todo),
            };
            record = self.flush_after(keep).unwrap_or_default(); // the run's next commit returns the error
        }
    }

    /// Rolls back the changes of a call that restarts from the beginning.
    pub(super) fn cut_off_call(&self, call_id: &str) {
        let call = self.calls().remove(call_id);
        call.iter().for_each(|call| call.cut_off());
    }

    /// Rolls back the changes of all unanswered calls; called when the run has ended.
    pub(super) fn cut_off_calls(&self) {
        let calls = std::mem::take(&mut *self.calls());
        calls.values().for_each(|call| call.cut_off());
    }

    fn calls(&self) -> MutexGuard<'_, BTreeMap<Arc<str>, Arc<CallStorage>>> {
        self.0.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
