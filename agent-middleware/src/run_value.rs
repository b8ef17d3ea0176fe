//! Durable values of a run.

use std::collections::BTreeSet;

use agent_core::{GlobalStorage, Key, Result, RunCx, RunEnd};
use serde::{Serialize, de::DeserializeOwned};

/// A value of each run that survives a pause, a restart and a move to another process.
///
/// It is stored in the storage that the hierarchy shares, as `middleware/run id/key`, so it is
/// journalled with the step that changed it. It is removed when the run has finished: a run that
/// ended otherwise may be resumed. Of such runs, a session keeps only the values of the newest,
/// since most of them are never resumed.
///
/// Run ids sort by creation time.
pub(crate) struct RunValue<T> {
    middleware: &'static str,
    key: Key<T>,
}

/// Maximum number of unfinished runs whose values a session keeps, for each value of a middleware.
const MOST_UNFINISHED: usize = 200;

impl<T: Clone + Default + PartialEq + Serialize + DeserializeOwned> RunValue<T> {
    pub(crate) const fn new(middleware: &'static str, key: &'static str) -> Self {
        Self { middleware, key: Key::new(key) }
    }

    /// Changes the value atomically; it starts with its default. An unchanged value is not written.
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

    /// True if the run has a stored value. Few runs have one, and this check is cheaper than an
    /// update without a change.
    pub(crate) fn is_set(&self, cx: &RunCx) -> bool {
        !cx.globals().is_empty() && self.scope(cx).get_value(self.key.name()).is_some()
    }

    /// Removes the value if the run has finished; otherwise removes those of the oldest unfinished
    /// runs beyond the limit.
    pub(crate) fn end(&self, cx: &RunCx, end: &Result<RunEnd>) {
        if matches!(end, Ok(RunEnd::Finished(_))) {
            self.scope(cx).remove(&self.key);
        } else if self.is_set(cx) {
            self.forget_the_oldest(cx);
        }
    }

    fn forget_the_oldest(&self, cx: &RunCx) {
        let all = cx.globals().scope(self.middleware);
        let names = all.snapshot();
        let of_key = names.keys().filter_map(|name| name.rsplit_once('/')).filter(|(_, key)| *key == self.key.name());
        let runs: BTreeSet<&str> = of_key.map(|(run, _)| run).collect();
        for run in runs.iter().take(runs.len().saturating_sub(MOST_UNFINISHED)) {
            all.scope(run).remove(&self.key);
        }
    }

    fn scope(&self, cx: &RunCx) -> GlobalStorage {
        cx.globals().scope(self.middleware).scope(&cx.ids().run_id)
    }
}
