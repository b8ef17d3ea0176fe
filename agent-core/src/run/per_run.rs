//! Live values of the runs under way.

use std::{
    collections::{HashMap, hash_map::Entry},
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use super::{RunCx, RunIds};

/// One live value for each run under way, for a middleware, which serves many runs at once: a clock, a span, a semaphore. What
/// must survive a pause or a restart belongs in the run's [`state`](RunCx::state) or [`globals`](RunCx::globals) instead.
///
/// A run that was dropped never comes to `after_agent`; its value goes when the map would grow.
///
/// ```
/// use agent_core::{Flow, Middleware, ModelRequest, ModelResponse, PerRun, Result, RunCx, RunEnd, async_trait};
/// use std::sync::atomic::{AtomicU32, Ordering};
///
/// #[derive(Default)]
/// struct CountCalls(PerRun<AtomicU32>);
///
/// #[async_trait]
/// impl Middleware for CountCalls {
///     async fn before_model(&self, cx: &RunCx, _: &mut ModelRequest) -> Result<Flow<ModelResponse>> {
///         self.0.of(cx, AtomicU32::default).fetch_add(1, Ordering::Relaxed);
///         Ok(Flow::Continue)
///     }
///
///     async fn after_agent(&self, cx: &RunCx, _: &mut Result<RunEnd>) -> Result<()> {
///         let calls = self.0.end(cx);
///         println!("{:?} calls", calls);
///         Ok(())
///     }
/// }
/// ```
pub struct PerRun<T>(Mutex<HashMap<Arc<str>, Slot<T>>>);

struct Slot<T> {
    run: Weak<RunIds>,
    value: Arc<T>,
}

impl<T> PerRun<T> {
    /// The value of the run, made now if it has none.
    pub fn of(&self, cx: &RunCx, make: impl FnOnce() -> T) -> Arc<T> {
        let ids = cx.ids();
        if let Some(value) = self.get(&ids.run_id) {
            return value;
        }
        let value = Arc::new(make()); // not under the lock: it may look at the values of other runs
        let mut runs = self.lock();
        if runs.len() == runs.capacity() {
            runs.retain(|_, slot| slot.is_live());
        }
        let slot = match runs.entry(ids.run_id.clone()) {
            Entry::Occupied(faster) if faster.get().is_live() => faster.into_mut(),
            entry => entry.insert_entry(Slot { run: Arc::downgrade(ids), value }).into_mut(),
        };
        slot.value.clone()
    }

    /// The value of the run with this id, if it has one.
    pub fn get(&self, run_id: &str) -> Option<Arc<T>> {
        self.lock().get(run_id).filter(|slot| slot.is_live()).map(|slot| slot.value.clone())
    }

    /// Takes the value of a run that ends.
    pub fn end(&self, cx: &RunCx) -> Option<Arc<T>> {
        self.lock().remove(&cx.ids().run_id).map(|slot| slot.value)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<str>, Slot<T>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Slot<T> {
    fn is_live(&self) -> bool {
        self.run.strong_count() > 0
    }
}

impl<T> Default for PerRun<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> fmt::Debug for PerRun<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.lock().keys()).finish()
    }
}

#[cfg(all(test, feature = "testing"))]
mod tests {
    use crate::{History, testing::detached_run};

    use super::*;

    #[test]
    fn runs_have_values_of_their_own() {
        let values = PerRun::default();
        let (a, b) = (detached_run(History::default()), detached_run(History::default()));
        assert_eq!(*values.of(a.cx(), || 1), 1);
        assert_eq!(*values.of(b.cx(), || 2), 2);
        assert_eq!(*values.of(a.cx(), || 3), 1, "made once");
        values.end(a.cx());
        assert!(values.get(&a.cx().ids().run_id).is_none());
        assert!(values.get(&b.cx().ids().run_id).is_some());
    }

    #[test]
    fn values_of_dropped_runs_do_not_pile_up() {
        let values = PerRun::default();
        for _ in 0..1000 {
            values.of(detached_run(History::default()).cx(), || ());
        }
        assert!(values.lock().len() < 10, "{} values of dead runs", values.lock().len());
    }
}
