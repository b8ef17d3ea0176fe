//! Ending waits for answers that do not begin.

use std::{
    collections::VecDeque,
    fmt, mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    task::{Context, Poll, Waker},
    time::Duration,
};

use tokio::time::{Instant, sleep_until};

/// The calls of a model whose answers have not begun.
///
/// All of them may wait equally long, so that the oldest is the next whose time is up: one timer serves them all. A timer for
/// each, set and taken back within milliseconds, would cost more than all else that is done to end waits.
pub(super) struct Waits {
    longest: Duration,
    queue: Arc<Mutex<Queue>>,
}

impl Waits {
    /// Waits of at most `longest`.
    pub(super) fn new(longest: Duration) -> Self {
        Self { longest, queue: Arc::default() }
    }

    pub(super) fn longest(&self) -> Duration {
        self.longest
    }

    /// A wait that begins now.
    pub(super) fn begin(&self) -> Wait<'_> {
        Wait { waits: self, due: Instant::now().checked_add(self.longest), id: None }
    }
}

impl fmt::Debug for Waits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Waits").field(&self.longest).finish()
    }
}

/// The wait of one call. It is over when this is dropped.
pub(super) struct Wait<'a> {
    waits: &'a Waits,
    /// None if that is beyond the clock's range.
    due: Option<Instant>,
    /// Its name in the queue, once it is there.
    id: Option<u64>,
}

impl Wait<'_> {
    /// Ready when it has lasted too long.
    pub(super) fn poll_too_long(&mut self, cx: &Context<'_>) -> Poll<()> {
        let Some(due) = self.due else { return Poll::Pending };
        if self.id.is_some() && Instant::now() >= due {
            return Poll::Ready(());
        }
        let mut queue = lock(&self.waits.queue);
        let before = match self.id.and_then(|id| queue.find(id)) {
            Some(call) if call.waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) => None,
            Some(call) => call.waker.replace(cx.waker().clone()),
            None => {
                self.id = Some(queue.push(due, cx.waker().clone()));
                None
            }
        };
        let watched = mem::replace(&mut queue.watched, true);
        drop(queue);
        drop(before); // not under the lock: the last waker of a task takes along whatever is left of it
        if !watched {
            tokio::spawn(Watch { queue: Arc::downgrade(&self.waits.queue), over: false }.run());
        }
        Poll::Pending
    }
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        let Some(id) = self.id else { return };
        let waker = lock(&self.waits.queue).remove(id);
        drop(waker); // not under the lock
    }
}

/// Calls in the order in which their time is up, which is that of their ids.
#[derive(Default)]
struct Queue {
    calls: VecDeque<Call>,
    /// How many of them wait no longer.
    over: usize,
    next_id: u64,
    /// Somebody looks after them.
    watched: bool,
}

struct Call {
    id: u64,
    due: Instant,
    /// None when the wait is over.
    waker: Option<Waker>,
}

impl Queue {
    fn push(&mut self, due: Instant, waker: Waker) -> u64 {
        // Two that begin at once may come in either order: the later one waits for the other's nanoseconds too.
        let due = self.calls.back().map_or(due, |last| last.due.max(due));
        let id = self.next_id;
        self.next_id += 1;
        self.calls.push_back(Call { id, due, waker: Some(waker) });
        id
    }

    fn find(&mut self, id: u64) -> Option<&mut Call> {
        // Its place, unless calls before it were forgotten.
        let at = usize::try_from(id.checked_sub(self.calls.front()?.id)?).ok()?;
        let at = match self.calls.get(at) {
            Some(call) if call.id == id => at,
            _ => self.calls.partition_point(|call| call.id < id),
        };
        self.calls.get_mut(at).filter(|call| call.id == id)
    }

    fn remove(&mut self, id: u64) -> Option<Waker> {
        let waker = self.find(id)?.waker.take();
        self.over += 1;
        self.trim();
        waker
    }

    /// Forgets calls that wait no longer, so that the first is one that does, and most of the others too.
    fn trim(&mut self) {
        while self.calls.front().is_some_and(|call| call.waker.is_none()) {
            self.calls.pop_front();
            self.over -= 1;
        }
        if self.over > self.calls.len() / 2 {
            self.calls.retain(|call| call.waker.is_some());
            self.over = 0;
        }
    }

    /// Takes those whose time is up.
    fn take_late(&mut self, now: Instant) -> Vec<Waker> {
        let late = self.calls.partition_point(|call| call.due <= now);
        let (over, wait) = self.calls.drain(..late).partition::<Vec<_>, _>(|call| call.waker.is_none());
        self.over -= over.len();
        self.trim();
        wait.into_iter().filter_map(|call| call.waker).collect()
    }
}

/// Looks after the calls for as long as there are any.
struct Watch {
    queue: Weak<Mutex<Queue>>,
    over: bool,
}

impl Watch {
    async fn run(mut self) {
        while let Some(due) = self.look() {
            sleep_until(due).await;
        }
    }

    /// Wakes those whose time is up; gives when the next one's is.
    fn look(&mut self) -> Option<Instant> {
        let queue = self.queue.upgrade()?;
        let mut queue = lock(&queue);
        let late = queue.take_late(Instant::now());
        let next = queue.calls.front().map(|call| call.due);
        queue.watched = next.is_some();
        self.over = next.is_none();
        drop(queue);
        late.into_iter().for_each(Waker::wake);
        next
    }
}

impl Drop for Watch {
    /// Its runtime ended before the calls did: those of another one look for another.
    fn drop(&mut self) {
        let Some(queue) = self.queue.upgrade().filter(|_| !self.over) else { return };
        let mut queue = lock(&queue);
        queue.watched = false;
        let wakers: Vec<_> = queue.calls.iter().filter_map(|call| call.waker.clone()).collect();
        drop(queue);
        wakers.into_iter().for_each(Waker::wake);
    }
}

fn lock(queue: &Mutex<Queue>) -> MutexGuard<'_, Queue> {
    queue.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::{future::poll_fn, pin::pin};

    use futures::{future::join_all, poll};

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    async fn too_long(waits: &Waits) -> Duration {
        let (began, mut wait) = (Instant::now(), waits.begin());
        poll_fn(|cx| wait.poll_too_long(cx)).await;
        began.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn each_call_waits_for_as_long_as_it_may_whatever_others_do() {
        let waits = Waits::new(SECOND * 10);
        let waits = &waits;
        let calls = join_all((0..20).map(|n| async move {
            tokio::time::sleep(SECOND * n).await;
            tokio::select! {
                waited = too_long(waits) => Some(waited),
                () = tokio::time::sleep(SECOND * 3), if n % 3 == 0 => None,
            }
        }));
        let waited = calls.await;
        for (n, waited) in waited.into_iter().enumerate() {
            let expected = (n % 3 != 0).then_some(SECOND * 10);
            assert_eq!(waited.map(|w| w.as_secs()), expected.map(|w| w.as_secs()), "call {n}");
        }
        let queue = lock(&waits.queue);
        assert_eq!((queue.calls.len(), queue.over), (0, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn calls_that_are_over_are_forgotten_though_an_older_one_waits() {
        let waits = Waits::new(SECOND * 10);
        let mut oldest = pin!(too_long(&waits));
        assert!(poll!(&mut oldest).is_pending());
        for _ in 0..1_000 {
            assert!(poll!(pin!(too_long(&waits))).is_pending());
            assert!(lock(&waits.queue).calls.len() < 4);
        }
        assert_eq!(oldest.await, SECOND * 10);
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_polls_last_is_woken() {
        let waits = Waits::new(SECOND);
        let mut wait = Box::pin(async move { too_long(&waits).await });
        assert!(poll!(&mut wait).is_pending());
        assert_eq!(tokio::spawn(wait).await.expect("no panic"), SECOND);
    }

    #[test]
    fn a_call_outlives_the_runtime_that_looked_after_it() {
        let waits = Waits::new(SECOND);
        let runtime = || tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        let mut wait = Box::pin(too_long(&waits));
        runtime().expect("a runtime").block_on(async { assert!(poll!(&mut wait).is_pending()) });
        assert!(!lock(&waits.queue).watched, "nobody looks after it");
        runtime().expect("a runtime").block_on(wait);
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_beyond_the_clocks_range_has_no_end() {
        let waits = Waits::new(Duration::MAX);
        assert!(poll!(pin!(too_long(&waits))).is_pending());
        assert!(lock(&waits.queue).calls.is_empty());
    }
}
