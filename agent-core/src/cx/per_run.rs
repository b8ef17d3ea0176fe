//! Live values of running runs.

use std::{
    any::Any,
    collections::HashMap,
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use super::RunCx;

/// One live value per running run, for a middleware, which serves many runs at once: a clock, a
/// span, a semaphore. Data that must survive a pause or a restart belongs in the run's
/// [`state`](RunCx::state) or [`globals`](RunCx::globals) instead.
///
/// `after_agent` is not called for a run that was dropped; its value is dropped with the run.
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
pub struct PerRun<T> {
    /// Key of this value in each run, faster to find than the run id.
    place: u64,
    by_id: Mutex<HashMap<Arc<str>, Weak<T>>>,
}

/// The live values of one run, which the run keeps alive.
pub(crate) type Live = Mutex<Vec<(u64, Arc<dyn Any + Send + Sync>)>>;

impl<T: Send + Sync + 'static> PerRun<T> {
    /// Returns the value of the run, creating it if necessary.
    pub fn of(&self, cx: &RunCx, make: impl FnOnce() -> T) -> Arc<T> {
        if let Some(value) = self.get(cx) {
            return value;
        }
        let run_id = &cx.ids().run_id;
        let made = Arc::new(make()); // not under the lock: `make` may read the values of other runs
        let mut runs = self.lock();
        if runs.len() == runs.capacity() {
            runs.retain(|_, value| value.strong_count() > 0);
        }
        if let Some(faster) = runs.get(run_id).and_then(Weak::upgrade) {
            return faster;
        }
        runs.insert(run_id.clone(), Arc::downgrade(&made));
        cx.live().push((self.place, made.clone()));
        made
    }

    /// Returns the value of the run, if it has one.
    pub fn get(&self, cx: &RunCx) -> Option<Arc<T>> {
        let live = cx.live();
        let (_, value) = live.iter().find(|(place, _)| *place == self.place)?;
        value.clone().downcast().ok()
    }

    /// Removes and returns the value of a run that ends.
    pub fn end(&self, cx: &RunCx) -> Option<Arc<T>> {
        self.lock().remove(&cx.ids().run_id);
        let mut live = cx.live();
        let at = live.iter().position(|(place, _)| *place == self.place)?;
        live.swap_remove(at).1.downcast().ok()
    }
}

impl<T> PerRun<T> {
    /// Returns the value of another running run by its id, for example of the parent run.
    pub fn of_id(&self, run_id: &str) -> Option<Arc<T>> {
        self.lock().get(run_id)?.upgrade()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<str>, Weak<T>>> {
        self.by_id.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RunCx {
    /// The live values of this run, which it keeps alive.
    fn live(&self) -> MutexGuard<'_, Vec<(u64, Arc<dyn Any + Send + Sync>)>> {
        self.0.live.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Default for PerRun<T> {
    fn default() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self { place: NEXT.fetch_add(1, Relaxed), by_id: Mutex::default() }
    }
}

impl<T> fmt::Debug for PerRun<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.lock().keys()).finish()
    }
}

#[cfg(all(test, feature = "testing"))]
mod tests {
    use crate::{history::History, testing::detached_run};

    use super::*;

    #[test]
    fn runs_have_values_of_their_own() {
        let values = PerRun::default();
        let (a, b) = (detached_run(History::default()), detached_run(History::default()));
        assert_eq!(*values.of(a.cx(), || 1), 1);
        assert_eq!(*values.of(b.cx(), || 2), 2);
        assert_eq!(*values.of(a.cx(), || 3), 1, "made once");
        values.end(a.cx());
        assert!(values.get(a.cx()).is_none() && values.of_id(&a.cx().ids().run_id).is_none());
        assert_eq!(
            (values.get(b.cx()).as_deref(), values.of_id(&b.cx().ids().run_id).as_deref()),
            (Some(&2), Some(&2))
        );
    }

    #[test]
    fn a_value_is_dropped_with_its_run() {
        let (values, alive) = (PerRun::default(), Arc::new(()));
        let run = detached_run(History::default());
        values.of(run.cx(), || alive.clone());
        assert_eq!(Arc::strong_count(&alive), 2);
        drop(run);
        assert_eq!(Arc::strong_count(&alive), 1);
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
