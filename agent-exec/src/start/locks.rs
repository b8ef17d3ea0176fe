//! Session locks: the runs of one agent that hold a session or wait for it.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use agent_core::{Error, ErrorKind, Message, Result, RunEnd, engine::Inbox};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

/// Session locks, by session and agent id. The map holds only locks that are held or waited for.
#[derive(Clone, Default)]
pub(crate) struct SessionLocks(Arc<Mutex<HashMap<Key, Arc<SessionLock>>>>);

type Key = (Arc<str>, Arc<str>);

/// Lock of one session, with the runs that want it.
pub(super) struct SessionLock {
    locks: SessionLocks,
    key: Key,
    /// A single permit, granted to waiters in FIFO order.
    permit: Arc<Semaphore>,
    waiting: AtomicUsize,
    running: watch::Sender<Option<Running>>,
}

/// The run that holds the lock.
#[derive(Clone)]
pub(super) struct Running {
    inbox: Inbox,
    end: watch::Sender<Option<Arc<Result<RunEnd>>>>,
}

/// Holds the session's lock for a run until it is dropped.
pub(super) struct SessionGuard {
    lock: Option<Arc<SessionLock>>,
    running: Running,
    _permit: OwnedSemaphorePermit,
}

impl SessionLocks {
    /// Returns a handle on the lock of a session and agent.
    pub(super) fn of(&self, session: &Arc<str>, agent_id: &Arc<str>) -> Queued {
        let key = (session.clone(), agent_id.clone());
        let lock = self.all().entry(key.clone()).or_insert_with(|| SessionLock::new(self.clone(), key)).clone();
        Queued(Some(lock))
    }

    fn all(&self) -> MutexGuard<'_, HashMap<Key, Arc<SessionLock>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Releases a handle on a lock, and removes the lock from the map if no other handle is left.
    fn leave(&self, lock: Option<Arc<SessionLock>>) {
        let Some(lock) = lock else { return };
        let mut locks = self.all();
        // The map holds one reference and this function the other.
        if Arc::strong_count(&lock) == 2 {
            locks.remove(&lock.key);
        }
        drop(lock); // while the map is locked, so that nobody else counts it
    }
}

impl SessionLock {
    fn new(locks: SessionLocks, key: Key) -> Arc<Self> {
        let (running, _) = watch::channel(None);
        let (permit, waiting) = (Arc::new(Semaphore::new(1)), AtomicUsize::new(0));
        Arc::new(Self { locks, key, permit, waiting, running })
    }
}

/// A handle on a lock, which keeps the lock in the map until it is dropped.
pub(super) struct Queued(Option<Arc<SessionLock>>);

impl Queued {
    fn lock(&self) -> &Arc<SessionLock> {
        self.0.as_ref().expect("it is only taken when the place is given up")
    }

    /// Acquires the lock if it is free.
    pub(super) fn try_acquire(&self, inbox: &Inbox) -> Option<SessionGuard> {
        let permit = self.lock().permit.clone().try_acquire_owned().ok()?;
        Some(self.begin(permit, inbox))
    }

    /// Waits for the lock, behind the earlier waiters.
    pub(super) async fn acquire(&self, inbox: &Inbox) -> SessionGuard {
        let permit = self.lock().permit.clone().acquire_owned().await.expect("nobody closes the lock");
        self.begin(permit, inbox)
    }

    /// Registers a waiter, unless `limit` are already waiting.
    pub(super) fn wait(&self, limit: usize) -> Option<Waiting<'_>> {
        let waiting = &self.lock().waiting;
        let counted = waiting.fetch_update(Ordering::AcqRel, Ordering::Acquire, |n| (n < limit).then(|| n + 1));
        counted.is_ok().then(|| Waiting(waiting))
    }

    /// Waits for a run to hold the lock and returns it.
    pub(super) async fn running(&self) -> Running {
        let mut running = self.lock().running.subscribe();
        let found = running.wait_for(Option::is_some).await.ok().and_then(|found| found.clone());
        found.expect("the lock is there as long as its place")
    }

    /// Waits until `run` no longer holds the lock.
    pub(super) async fn over(&self, run: &Running) -> Result<()> {
        let mut running = self.lock().running.subscribe();
        let other = |now: &Option<Running>| now.as_ref().is_none_or(|now| !now.end.same_channel(&run.end));
        // an error means that the lock is gone, and the run with it
        let _ = running.wait_for(other).await;
        Ok(())
    }

    fn begin(&self, permit: OwnedSemaphorePermit, inbox: &Inbox) -> SessionGuard {
        let running = Running { inbox: inbox.clone(), end: watch::channel(None).0 };
        self.lock().running.send_replace(Some(running.clone()));
        SessionGuard { lock: self.0.clone(), running, _permit: permit }
    }
}

impl Drop for Queued {
    fn drop(&mut self) {
        let locks = self.lock().locks.clone();
        locks.leave(self.0.take());
    }
}

/// A registered waiter.
pub(super) struct Waiting<'a>(&'a AtomicUsize);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Running {
    /// Sends the messages to the run; the returned future resolves to the run's end.
    ///
    /// # Errors
    /// As [`Inbox::extend`]: the run did not accept the messages.
    pub(super) fn steer(&self, messages: Vec<Message>) -> Result<impl Future<Output = Result<RunEnd>> + Send + use<>> {
        // Subscribe first: a run that takes the messages may end at once, and notifies only
        // existing subscribers.
        let mut ends = self.end.subscribe();
        self.inbox.extend(messages)?;
        Ok(async move {
            match ends.wait_for(Option::is_some).await.ok().and_then(|end| end.clone()) {
                Some(end) => copy(&end),
                None => Err(Error::new(
                    ErrorKind::Cancelled,
                    "the run that took the message was dropped before its end: the session can be recovered",
                )),
            }
        })
    }
}

/// Copies the run's end. The sources of an error stay with the original.
fn copy(end: &Result<RunEnd>) -> Result<RunEnd> {
    let e = match end {
        Ok(end) => return Ok(end.clone()),
        Err(e) => e,
    };
    let copy = Error::new(e.kind(), e.message().to_owned()).with_retry(e.retry());
    Err(match e.checkpoint() {
        Some(checkpoint) => copy.with_checkpoint(checkpoint.clone()),
        None => copy,
    })
}

impl SessionGuard {
    /// Notifies the callers whose messages the run took of its end.
    pub(super) fn end(self, end: &Result<RunEnd>) {
        if self.running.end.receiver_count() > 0 {
            let copy = copy(end);
            self.running.end.send_replace(Some(Arc::new(copy)));
        }
    }
}

impl Drop for SessionGuard {
    fn drop(&mut self) {
        if let Some(lock) = self.lock.take() {
            lock.running.send_replace(None);
            let locks = lock.locks.clone();
            locks.leave(Some(lock));
        }
    }
}

#[cfg(test)]
mod tests {
    use agent_core::{Exit, ExitReason, Finished, History, RunIds};
    use futures::FutureExt;

    use super::*;

    fn done() -> Result<RunEnd> {
        let exit = Exit::new(ExitReason::Text, "done");
        let ids = RunIds::root("a", "s");
        Ok(RunEnd::Finished(Box::new(Finished::new(ids, exit.answer, exit.reason, History::default()))))
    }

    #[test]
    fn whoever_steers_a_run_that_ends_at_that_moment_is_told_what_became_of_the_message() {
        for (is_closed, is_dropped, told) in [
            (false, false, Ok("finished")),
            (false, true, Err(ErrorKind::Cancelled)),
            (true, false, Err(ErrorKind::Stopped)),
            (true, true, Err(ErrorKind::Stopped)),
        ] {
            let inbox = Inbox::default();
            let queued = SessionLocks::default().of(&"s".into(), &"a".into());
            let turn = queued.try_acquire(&inbox).expect("it is free");
            let running = queued.running().now_or_never().expect("its turn");
            if is_closed {
                inbox.close();
            }
            let steered = running.steer(vec![Message::user("more")]);
            drop(running);
            // The run ends before the steering caller waits for it.
            assert_eq!(inbox.close().len(), usize::from(!is_closed));
            match is_dropped {
                true => drop(turn),
                false => turn.end(&done()),
            }
            let end = steered.and_then(|end| end.now_or_never().expect("it is over"));
            assert_eq!(
                end.as_ref().map(RunEnd::as_str).map_err(Error::kind),
                told,
                "closed: {is_closed}, dropped: {is_dropped}"
            );
        }
    }
}
