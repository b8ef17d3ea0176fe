//! Thread that owns the connection and renews the process's reservations.

use std::{
    collections::VecDeque,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread::{self, JoinHandle},
    time::Duration,
};

use agent_core::{Error, ErrorKind, Result};

use super::tables::Tables;
use crate::error::thread_ended;

type Work = Box<dyn FnOnce(&mut Tables) + Send>;

/// The ledger's thread; dropping it waits until all its work is done.
pub(super) struct LedgerThread {
    queue: Arc<Queue>,
    handle: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Queue {
    state: Mutex<State>,
    more: Condvar,
}

#[derive(Default)]
struct State {
    work: VecDeque<Work>,
    closed: bool,
}

impl LedgerThread {
    pub(super) fn start(mut tables: Tables, renew: Duration) -> Result<Self> {
        let queue = Arc::<Queue>::default();
        let taken = queue.clone();
        let run = move || {
            while let Some(work) = taken.take(renew) {
                if work.is_empty()
                    && let Err(e) = tables.renew()
                {
                    tracing::warn!(error = %e, "a ledger's reservations could not be renewed; they may expire");
                }
                work.into_iter().for_each(|work| work(&mut tables));
            }
        };
        let handle = thread::Builder::new().name("agent-ledger".into()).spawn(run).map_err(|e| {
            Error::new(ErrorKind::Store, "the ledger's thread cannot be started: raise the limit of threads")
                .with_source(e)
        })?;
        Ok(Self { queue, handle: Some(handle) })
    }

    pub(super) fn push(&self, work: Work) -> Result<()> {
        let mut state = self.queue.lock();
        if state.closed {
            return Err(thread_ended());
        }
        state.work.push_back(work);
        drop(state);
        self.queue.more.notify_one();
        Ok(())
    }
}

impl Queue {
    /// Waits for work, at most for `patience`; empty after a timeout, `None` once closed and
    /// drained.
    fn take(&self, patience: Duration) -> Option<VecDeque<Work>> {
        let idle = |state: &mut State| state.work.is_empty() && !state.closed;
        let waited = self.more.wait_timeout_while(self.lock(), patience, idle);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        (!state.work.is_empty() || !state.closed).then(|| std::mem::take(&mut state.work))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for LedgerThread {
    fn drop(&mut self) {
        self.queue.lock().closed = true;
        self.queue.more.notify_one();
        if let Some(handle) = self.handle.take()
            && handle.thread().id() != thread::current().id()
        {
            let _ = handle.join();
        }
    }
}
