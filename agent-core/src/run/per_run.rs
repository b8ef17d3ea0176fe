//! Live values of the runs under way.

use std::{
    any::Any,
    collections::HashMap,
    fmt, ptr,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use super::RunCx;

/// One live value for each run under way, for a middleware, which serves many runs at once: a clock, a span, a semaphore. What
/// must survive a pause or a restart belongs in the run's [`state`](RunCx::state) or [`globals`](RunCx::globals) instead.
///
/// A run that was dropped never comes to `after_agent`; its value is dropped with it.
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
pub struct PerRun<T>(Mutex<HashMap<Arc<str>, Weak<T>>>);

impl<T: Send + Sync + 'static> PerRun<T> {
    /// The value of the run, made now if it has none.
    pub fn of(&self, cx: &RunCx, make: impl FnOnce() -> T) -> Arc<T> {
        let run_id = &cx.ids().run_id;
        if let Some(value) = self.get(run_id) {
            return value;
        }
        let made = Arc::new(make()); // not under the lock: it may look at the values of other runs
        let mut runs = self.lock();
        if runs.len() == runs.capacity() {
            runs.retain(|_, value| value.strong_count() > 0);
        }
        if let Some(faster) = runs.get(run_id).and_then(Weak::upgrade) {
            return faster;
        }
        runs.insert(run_id.clone(), Arc::downgrade(&made));
        cx.live().push(made.clone());
        made
    }

    /// Takes the value of a run that ends.
    pub fn end(&self, cx: &RunCx) -> Option<Arc<T>> {
        let value = self.lock().remove(&cx.ids().run_id)?.upgrade()?;
        cx.live().retain(|other| !ptr::addr_eq(Arc::as_ptr(other), Arc::as_ptr(&value)));
        Some(value)
    }
}

impl<T> PerRun<T> {
    /// The value of the run with this id, if it has one.
    pub fn get(&self, run_id: &str) -> Option<Arc<T>> {
        self.lock().get(run_id)?.upgrade()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<str>, Weak<T>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RunCx {
    /// The values of this run, which hold them alive.
    fn live(&self) -> MutexGuard<'_, Vec<Arc<dyn Any + Send + Sync>>> {
        self.0.live.lock().unwrap_or_else(PoisonError::into_inner)
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
