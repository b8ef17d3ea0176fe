//! Queue between a run tree and its journal: entries on the way out, acknowledgements on the way
//! back.

use std::{
    collections::VecDeque,
    fmt,
    future::poll_fn,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Wake, Waker, ready},
};

use crate::{
    error::{Error, ErrorKind, Result},
    event::Emitter,
    journal::{Ack, Entry},
};

/// Batches that a run tree has appended and the journal has not acknowledged yet. All runs of the
/// tree share it, so that readers see entries in journal order.
///
/// No lock is held across an await: a run's future that is not polled does not block other runs.
#[derive(Default)]
pub(super) struct Outbox {
    queue: Mutex<Queue>,
    /// Held while events are published, so that they leave in order.
    telling: Mutex<()>,
    waiters: Arc<Waiters>,
}

/// Batches are numbered from 1 in the order in which the journal received them.
#[derive(Default)]
struct Queue {
    waiting: VecDeque<Sent>,
    sent: u64,
    acknowledged: u64,
    /// Set by the first batch that the journal rejects, or when the session is lost: nothing counts
    /// as durable after it.
    failed: Option<Failure>,
}

/// Why the journal rejects appends: the kind and message of the error.
type Failure = (ErrorKind, String);

/// A batch that is appended but not acknowledged. Its entries are kept only if the run is observed.
pub(super) struct Sent {
    pub(super) ack: Ack,
    pub(super) count: usize,
    pub(super) entries: Option<Vec<Entry>>,
    pub(super) emitter: Emitter,
}

/// Wakers of all tasks that wait for an acknowledgement or drive a run. All are woken: the task
/// that polled last may be gone when it arrives.
#[derive(Default)]
struct Waiters(Mutex<Vec<Waker>>);

impl Waiters {
    fn add(&self, waker: &Waker) {
        let mut waiters = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !waiters.iter().any(|known| known.will_wake(waker)) {
            waiters.push(waker.clone());
        }
    }
}

impl Wake for Waiters {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let waiters = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        waiters.into_iter().for_each(Waker::wake);
    }
}

impl Queue {
    /// True if a batch up to `until` is not acknowledged yet.
    fn is_open(&self, until: u64) -> Result<bool> {
        match &self.failed {
            Some(failure) => Err(repeated(failure)),
            None => Ok(self.acknowledged < until),
        }
    }

    /// Fails once the journal has rejected a batch, even if its acknowledgement was not awaited.
    fn check_unbroken(&self) -> Result<()> {
        let refused_at_once = self.waiting.back().and_then(|newest| match &newest.ack {
            Ack::Done(Some(Err(e))) => Some(failure(e)),
            _ => None,
        });
        match self.failed.as_ref().or(refused_at_once.as_ref()) {
            Some(failure) => Err(repeated(failure)),
            None => Ok(()),
        }
    }

    /// Polls the oldest batch; ready with its first sequence number once the journal has answered.
    fn poll_oldest(&mut self, cx: &mut Context<'_>) -> Poll<(Result<u64>, Sent)> {
        let oldest = self.waiting.front_mut().expect("what is open is in the queue");
        let first = ready!(Pin::new(&mut oldest.ack).poll(cx));
        let sent = self.waiting.pop_front().expect("it was polled");
        self.acknowledged += 1;
        if let Err(e) = &first {
            self.failed.get_or_insert_with(|| failure(e));
        }
        Poll::Ready((first, sent))
    }
}

fn failure(e: &Error) -> Failure {
    (e.kind(), e.message().to_owned())
}

fn repeated((kind, message): &Failure) -> Error {
    Error::new(*kind, message.clone())
}

impl Outbox {
    /// Calls `append`, and queues the batch that it appended, if any. No other run of the tree can
    /// append meanwhile. After a rejected batch nothing is appended any more: recovery from a
    /// journal with a gap would repeat effects.
    ///
    /// # Errors
    /// The errors of `append`, and the error of a batch that the journal rejected.
    pub(super) fn send(&self, append: impl FnOnce() -> Result<Option<Sent>>) -> Result<()> {
        let mut queue = self.queue();
        queue.check_unbroken()?;
        let Some(mut sent) = append()? else { return Ok(()) };
        queue.sent += 1;
        // A batch that is acknowledged at once need not wait, unless events of earlier batches are
        // still being published.
        if queue.waiting.is_empty()
            && let Ok(_in_order) = self.telling.try_lock()
            && let Some(first) = sent.ack.take_first()
        {
            queue.acknowledged += 1;
            drop(queue);
            sent.emitter.committed(first, sent.entries, sent.count);
        } else {
            sent.emitter.sent();
            queue.waiting.push_back(sent);
        }
        Ok(())
    }

    /// Fails once the journal has rejected a batch.
    pub(super) fn check(&self) -> Result<()> {
        self.queue().check_unbroken()
    }

    /// Rejects all further appends, as after a batch that the journal rejected.
    pub(super) fn refuse(&self, e: &Error) {
        self.queue().failed.get_or_insert_with(|| failure(e));
    }

    /// Wakes all tasks that drive a run of the tree.
    pub(super) fn wake(&self) {
        self.waiters.wake_by_ref();
    }

    /// Publishes the events of durable entries, and registers the waker of `cx` for the next
    /// acknowledgement or the next [`wake`](Self::wake).
    pub(super) fn poll_tell(&self, cx: &mut Context<'_>) {
        let sent = {
            let queue = self.queue();
            if queue.waiting.is_empty() {
                self.waiters.add(cx.waker());
                return;
            }
            queue.sent
        };
        let _ = self.poll_settled(sent, cx); // the next append or commit reports a journal failure
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until all batches appended before the call are durable, and publishes their events.
    pub(super) async fn settle(&self) -> Result<()> {
        let until = {
            let queue = self.queue();
            if !queue.is_open(queue.sent)? {
                return Ok(());
            }
            queue.sent
        };
        poll_fn(|cx| self.poll_settled(until, cx)).await
    }

    fn poll_settled(&self, until: u64, cx: &mut Context<'_>) -> Poll<Result<()>> {
        let _in_order = self.telling.lock().unwrap_or_else(PoisonError::into_inner);
        while self.queue().is_open(until)? {
            let (first, Sent { entries, count, emitter, .. }) = ready!(self.poll_oldest(cx));
            self.waiters.wake_by_ref();
            match first {
                Ok(first) => emitter.acknowledged(first, entries, count),
                Err(e) => {
                    emitter.let_go();
                    return Poll::Ready(Err(e));
                }
            }
        }
        Poll::Ready(Ok(()))
    }

    fn poll_oldest(&self, cx: &mut Context<'_>) -> Poll<(Result<u64>, Sent)> {
        let waker = Waker::from(self.waiters.clone());
        let mut all = Context::from_waker(&waker);
        let oldest = self.queue().poll_oldest(&mut all);
        if oldest.is_ready() {
            return oldest;
        }
        self.waiters.add(cx.waker());
        self.queue().poll_oldest(&mut all) // it may have completed before the waker was registered
    }
}

impl fmt::Debug for Outbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outbox").field("waiting", &self.queue().waiting.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures::{FutureExt, future::join_all};
    use tokio::sync::oneshot;

    use super::*;
    use crate::{history::History, journal::EntryBody, testing::detached_run};

    /// An outbox with one batch, which is acknowledged when the sender sends.
    fn waiting() -> (Outbox, oneshot::Sender<u64>) {
        let (outbox, (says, heard)) = (Outbox::default(), oneshot::channel());
        let ack = Ack::Later(async move { heard.await.map_err(|_| Error::new(ErrorKind::Store, "full")) }.boxed());
        outbox.send(|| Ok(Some(batch(ack)))).expect("handed over");
        (outbox, says)
    }

    fn batch(ack: Ack) -> Sent {
        let emitter = detached_run(History::default()).engine().emitter().clone();
        let body = EntryBody::Decided { name: "n".into(), value: 1.into(), beginning: false };
        let entries = Some(vec![Entry::new("r".into(), 0, body)]);
        Sent { ack, count: 1, entries, emitter }
    }

    #[tokio::test(start_paused = true)]
    async fn all_who_wait_are_told_even_if_the_last_to_ask_is_gone() {
        let (outbox, says) = waiting();
        let outbox = Arc::new(outbox);
        let settle = || {
            let outbox = outbox.clone();
            tokio::spawn(async move { outbox.settle().await })
        };
        let (first, second, gone) = (settle(), settle(), settle());
        tokio::time::sleep(Duration::from_millis(1)).await;
        gone.abort();
        assert!(gone.await.expect_err("aborted").is_cancelled());
        says.send(1).expect("somebody waits");
        let all = tokio::time::timeout(Duration::from_secs(1), join_all([first, second])).await.expect("woken");
        assert!(all.into_iter().all(|end| end.expect("no panic").is_ok()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_waiter_that_is_not_polled_holds_nobody_up() {
        let (outbox, says) = waiting();
        let mut forgotten = Box::pin(outbox.settle());
        assert!((&mut forgotten).now_or_never().is_none());
        says.send(1).expect("somebody waits");
        let other = tokio::time::timeout(Duration::from_secs(1), outbox.settle()).await;
        assert!(other.expect("not held up").is_ok());
        assert!(forgotten.await.is_ok());
    }

    #[tokio::test]
    async fn after_a_refused_batch_nothing_counts_as_durable() {
        let (outbox, says) = waiting();
        drop(says);
        for _ in 0..2 {
            assert_eq!(outbox.settle().await.expect_err("refused").kind(), ErrorKind::Store);
        }
    }

    #[tokio::test]
    async fn after_a_refused_batch_nothing_is_handed_over() {
        let (waited_for, says) = waiting();
        drop(says);
        waited_for.settle().await.expect_err("refused");
        let (known_at_once, _unanswered) = waiting();
        let refused = Ack::Done(Some(Err(Error::new(ErrorKind::Store, "full"))));
        known_at_once.send(|| Ok(Some(batch(refused)))).expect("handed over");
        for outbox in [waited_for, known_at_once] {
            let e = outbox.send(|| panic!("handed over behind a hole")).expect_err("refused");
            assert_eq!((e.kind(), e.message()), (ErrorKind::Store, "full"));
        }
    }
}
