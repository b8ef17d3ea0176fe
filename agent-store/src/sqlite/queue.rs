//! Work queue of the writer thread.

use std::{
    collections::VecDeque,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use agent_core::{Error, Result};

use super::tables::Tables;
use crate::error::{cannot_keep_up, thread_ended};

/// Result of a job: the outer error is SQLite's and rolls back the whole transaction; the inner
/// result is the job's answer, and an inner error means that the job has written nothing.
pub(super) type Outcome<T> = rusqlite::Result<Result<T>>;

/// Job that shares a transaction with others.
pub(super) trait Work: Send {
    /// Runs the job. Repeated if the transaction was rolled back because of another job.
    fn run(&mut self, tables: &Tables<'_>) -> rusqlite::Result<()>;

    /// True if the job contains the end of a run, which must be on disk before it is acknowledged,
    /// even in an asynchronous journal.
    fn ends_run(&self) -> bool;

    /// Sends the answer: the transaction is durable, or failed.
    fn finish(self: Box<Self>, failure: Option<Error>);
}

/// Creates a job from two closures.
pub(super) fn job<T: Send + 'static>(
    run: impl FnMut(&Tables<'_>) -> Outcome<T> + Send + 'static,
    deliver: impl FnOnce(Result<T>) + Send + 'static,
) -> Box<dyn Work> {
    append_job(false, run, deliver)
}

/// Like [`job`], for an append that may end a run.
pub(super) fn append_job<T: Send + 'static>(
    ends_run: bool,
    run: impl FnMut(&Tables<'_>) -> Outcome<T> + Send + 'static,
    deliver: impl FnOnce(Result<T>) + Send + 'static,
) -> Box<dyn Work> {
    Box::new(Job { ends_run, run, deliver, outcome: None })
}

struct Job<T, R, D> {
    ends_run: bool,
    run: R,
    deliver: D,
    outcome: Option<Result<T>>,
}

impl<T, R, D> Work for Job<T, R, D>
where
    T: Send,
    R: FnMut(&Tables<'_>) -> Outcome<T> + Send,
    D: FnOnce(Result<T>) + Send,
{
    fn run(&mut self, tables: &Tables<'_>) -> rusqlite::Result<()> {
        self.outcome = Some((self.run)(tables)?);
        Ok(())
    }

    fn ends_run(&self) -> bool {
        self.ends_run
    }

    fn finish(self: Box<Self>, failure: Option<Error>) {
        let outcome = failure.map(Err).or(self.outcome);
        (self.deliver)(outcome.unwrap_or_else(|| Err(thread_ended())));
    }
}

/// Queue whose senders never block.
///
/// An append enqueues its entries when it is called, on a thread that must not block, so it cannot
/// wait for space; a future that waited for space would enqueue too late and out of order.
/// Back-pressure comes from the acknowledgement instead: a run that awaits it appends nothing
/// meanwhile, which bounds the queue. The limit in bytes is for callers that do not await it.
pub(super) struct Queue {
    state: Mutex<State>,
    more: Condvar,
    limit: usize,
}

#[derive(Default)]
struct State {
    work: VecDeque<(usize, Box<dyn Work>)>,
    bytes: usize,
    closed: bool,
}

impl Queue {
    pub(super) fn new(limit: usize) -> Self {
        Self { state: Mutex::default(), more: Condvar::new(), limit }
    }

    /// Adds work that holds `bytes` of entries; work without entries is always accepted.
    pub(super) fn push(&self, bytes: usize, work: Box<dyn Work>) -> Result<()> {
        let mut state = self.lock();
        if state.closed {
            return Err(thread_ended());
        }
        // Accept entries larger than the limit when nothing else waits: they could never be written
        // otherwise.
        if bytes > 0 && state.bytes > 0 && state.bytes + bytes > self.limit {
            return Err(cannot_keep_up(state.bytes));
        }
        state.bytes += bytes;
        state.work.push_back((bytes, work));
        drop(state);
        self.more.notify_one();
        Ok(())
    }

    /// Waits for work, at most for `patience`, and takes at most `most` jobs. `None` once the queue
    /// is closed and empty.
    pub(super) fn take(&self, most: usize, patience: Duration) -> Option<Vec<Box<dyn Work>>> {
        let idle = |state: &mut State| state.work.is_empty() && !state.closed;
        let waited = self.more.wait_timeout_while(self.lock(), patience, idle);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if state.work.is_empty() && state.closed {
            return None;
        }
        let count = state.work.len().min(most);
        let (sizes, work): (Vec<_>, Vec<_>) = state.work.drain(..count).unzip();
        state.bytes -= sizes.into_iter().sum::<usize>();
        Some(work)
    }

    /// Closes the queue for new work; queued work can still be taken.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.more.notify_one();
    }

    /// Drops all queued work; its callers get an error.
    pub(super) fn abandon(&self) {
        self.close();
        let left = std::mem::take(&mut self.lock().work);
        drop(left); // without the lock: a lease that is dropped with its answer comes back here
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
