//! Tasks that run alongside a run's loop.

use std::{
    fmt,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Waker},
};

use futures::{FutureExt, future::BoxFuture};

use super::RunCx;
use crate::error::{Error, ErrorKind, Result};

/// Spawned tasks that the executor has not taken yet.
#[derive(Default)]
pub(crate) struct Tasks {
    state: Mutex<State>,
    /// True if a spawned task has not been taken yet.
    waiting: AtomicBool,
}

#[derive(Default)]
struct State {
    new: Vec<BoxFuture<'static, ()>>,
    executor: Option<Waker>,
    closed: bool,
}

impl Tasks {
    pub(super) fn is_waiting(&self) -> bool {
        self.waiting.load(Ordering::Acquire)
    }

    pub(super) fn take(&self, executor: &Context<'_>) -> Vec<BoxFuture<'static, ()>> {
        let mut tasks = self.lock();
        self.waiting.store(false, Ordering::Release);
        match &mut tasks.executor {
            Some(known) => known.clone_from(executor.waker()),
            none => *none = Some(executor.waker().clone()),
        }
        std::mem::take(&mut tasks.new)
    }

    pub(super) fn close(&self) {
        let mut tasks = self.lock();
        (tasks.closed, tasks.executor) = (true, None);
        let dropped = std::mem::take(&mut tasks.new);
        drop(tasks);
        drop(dropped); // not under the lock: destructors may access the run
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RunCx {
    /// Runs `task` alongside the run's loop while the run is running: the task is dropped when the
    /// run ends or is dropped.
    ///
    /// # Errors
    /// [`ErrorKind::Stopped`] if the run has ended.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> Result<()> {
        let mut tasks = self.0.tasks.lock();
        if tasks.closed {
            return Err(Error::new(ErrorKind::Stopped, "the run is over: nothing can run beside it"));
        }
        tasks.new.push(task.boxed());
        self.0.tasks.waiting.store(true, Ordering::Release);
        let executor = tasks.executor.take();
        drop(tasks);
        executor.into_iter().for_each(Waker::wake);
        Ok(())
    }
}

impl fmt::Debug for Tasks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tasks").field("new", &self.lock().new.len()).finish_non_exhaustive()
    }
}
