//! What calls under way write to the storage and the state: kept with their results.

use std::{
    collections::BTreeMap,
    sync::{Arc, MutexGuard, PoisonError},
};

use super::{Open, RunLog};
use crate::storage::{CallStorage, NewValue};

impl RunLog {
    /// The storage of a call under way: the same one for every try at it.
    pub(crate) fn call_storage(&self, call_id: &Arc<str>, make: impl FnOnce() -> CallStorage) -> Arc<CallStorage> {
        self.calls().entry(call_id.clone()).or_insert_with(|| Arc::new(make())).clone()
    }

    /// The values that a call changed and did not keep yet: those of the shared storage, and of the state.
    pub(super) fn call_changes(&self, call_id: &str) -> (Vec<NewValue>, Vec<NewValue>) {
        let call = self.calls().get(call_id).cloned();
        call.map(|call| call.changes().values()).unwrap_or_default()
    }

    /// Records that a call has a result, as one step with keeping what it changed so far. If it changed anything, that is
    /// flushed at once: whoever else of the tree flushes meanwhile takes the change either with the entry or not at all.
    pub(super) fn record_result(&self, call_id: &str, record: impl FnOnce(&mut Open)) {
        let call = self.calls().get(call_id).cloned();
        self.record_with_changes(call.as_deref(), false, record);
    }

    /// As [`record_result`](Self::record_result), and nothing more is kept with this call: it is answered, and
    /// [closed](Self::record_closed).
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
            record = self.flush_after(keep).unwrap_or_default(); // the run's next commit fails with it
        }
    }

    /// A call is entered again from its start: what it changed is taken back.
    pub(super) fn cut_off_call(&self, call_id: &str) {
        let call = self.calls().remove(call_id);
        call.iter().for_each(|call| call.cut_off());
    }

    /// As [`cut_off_call`](Self::cut_off_call), for all calls that have no answer when the run is over.
    pub(super) fn cut_off_calls(&self) {
        let calls = std::mem::take(&mut *self.calls());
        calls.values().for_each(|call| call.cut_off());
    }

    fn calls(&self) -> MutexGuard<'_, BTreeMap<Arc<str>, Arc<CallStorage>>> {
        self.0.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
