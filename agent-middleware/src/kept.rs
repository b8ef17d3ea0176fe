//! Durable values of one run.

use agent_core::{GlobalStorage, Key, Result, RunCx, RunEnd};
use serde::{Serialize, de::DeserializeOwned};

/// A value of each run that survives a pause, a restart and a move to another process.
///
/// It lies in the storage that the hierarchy shares, as `middleware/run id/key`, so it is journalled with the step that
/// changed it. It goes when the run has finished: a run that ended otherwise may be gone on with.
pub(crate) struct Kept<T> {
    middleware: &'static str,
    key: Key<T>,
}

impl<T: Clone + Default + PartialEq + Serialize + DeserializeOwned> Kept<T> {
    pub(crate) const fn new(middleware: &'static str, key: &'static str) -> Self {
        Self { middleware, key: Key::new(key) }
    }

    /// Changes the value, at first its default, as one step. Nothing is written if it stays the same.
    pub(crate) fn update<R>(&self, cx: &RunCx, change: impl Fn(&mut T) -> R) -> Result<R> {
        self.scope(cx).transaction(|tx| {
            let before = tx.get(&self.key)?.unwrap_or_default();
            let mut value = before.clone();
            let result = change(&mut value);
            if value != before {
                tx.set(&self.key, &value)?;
            }
            Ok(result)
        })
    }

    /// True if the run has a value of its own: few runs have, and looking costs less than a change that changes nothing.
    pub(crate) fn is_set(&self, cx: &RunCx) -> bool {
        !cx.globals().is_empty() && self.scope(cx).get_value(self.key.name()).is_some()
    }

    /// Forgets the value if the run has finished.
    pub(crate) fn end(&self, cx: &RunCx, end: &Result<RunEnd>) {
        if matches!(end, Ok(RunEnd::Finished(_))) {
            self.scope(cx).remove(&self.key);
        }
    }

    fn scope(&self, cx: &RunCx) -> GlobalStorage {
        cx.globals().scope(self.middleware).scope(&cx.ids().run_id)
    }
}
