//! Leaf futures of a run: streamed model calls, which the run polls directly.
//!
//! A run is a chain of about twenty nested futures, from [`Run`](crate::Run) through the executor,
//! the step and the stack of layers down to the connection. A streamed answer wakes its task once
//! per chunk, and nothing between the two ends has anything to do then. So the innermost call is a
//! [`Leaf`] with a waker of its own: a chunk wakes the task, the run polls the leaf, and the chain
//! is polled when the call has ended or something else has woken it (a cancellation, a deadline, a
//! layer).
//!
//! No task is spawned: the leaf belongs to the chain, and dropping the chain drops it. It is polled
//! by the run that first polled it, so that task-local values of a layer are visible to a model
//! until it first waits. Its tracing span is entered for every poll.

use std::{
    cell::RefCell,
    fmt, mem,
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

use agent_core::BoxFuture;
use futures::task::AtomicWaker;
use tracing::Span;

thread_local! {
    /// Leaves of the run that this thread polls.
    static CURRENT: RefCell<Option<Arc<Woken>>> = const { RefCell::new(None) };
}

/// A future and the leaves within it.
pub(crate) struct WithLeaves<T> {
    chain: BoxFuture<'static, T>,
    chain_waker: Arc<ChainWaker>,
    leaves: Arc<Woken>,
}

/// Leaves that were woken since the last poll, and the task to wake for them.
struct Woken {
    /// `None` once nobody polls leaves any more.
    leaves: Mutex<Option<Vec<Arc<dyn Resume>>>>,
    task: AtomicWaker,
}

/// Waker of the chain.
struct ChainWaker {
    is_woken: AtomicBool,
    leaves: Arc<Woken>,
}

/// A future that the surrounding [`WithLeaves`] polls when its own waker is woken. Outside of one,
/// it is an ordinary future.
pub(crate) struct Leaf<T>(State<T>);

enum State<T> {
    New(BoxFuture<'static, T>),
    Own(BoxFuture<'static, T>),
    Shared(Arc<Slot<T>>),
    Ended,
}

/// A leaf that has been polled.
struct Slot<T> {
    call: Mutex<Call<T>>,
    /// Waker of the task that waits for the result.
    chain: AtomicWaker,
    is_queued: AtomicBool,
    leaves: Weak<Woken>,
    this: Weak<Self>,
    span: Span,
}

enum Call<T> {
    Pending(BoxFuture<'static, T>),
    /// The future is being polled.
    Taken,
    Done(T),
    /// Nobody waits for the result any more.
    Dropped,
}

/// A leaf, whatever its result.
trait Resume: Send + Sync {
    /// Polls the leaf.
    fn resume(&self);

    /// Wakes the task that waits for the leaf, which polls it from now on.
    fn give_up(&self);
}

impl<T> WithLeaves<T> {
    pub(crate) fn new(chain: BoxFuture<'static, T>) -> Self {
        let leaves = Arc::new(Woken { leaves: Mutex::new(Some(Vec::new())), task: AtomicWaker::new() });
        let chain_waker = Arc::new(ChainWaker { is_woken: AtomicBool::new(true), leaves: leaves.clone() });
        Self { chain, chain_waker, leaves }
    }
}

impl<T> Future for WithLeaves<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        let this = &mut *self;
        this.leaves.task.register(cx.waker());
        let _entered = Entered::new(&this.leaves);
        let woken = lock(&this.leaves.leaves).as_mut().map(mem::take);
        woken.iter().flatten().for_each(|leaf| leaf.resume());
        if !this.chain_waker.is_woken.swap(false, Ordering::AcqRel) {
            return Poll::Pending;
        }
        let waker = Waker::from(this.chain_waker.clone());
        this.chain.as_mut().poll(&mut Context::from_waker(&waker))
    }
}

impl<T> Drop for WithLeaves<T> {
    fn drop(&mut self) {
        // A part of the chain that a layer moved to another task polls its leaf itself from now on.
        let woken = lock(&self.leaves.leaves).take();
        woken.iter().flatten().for_each(|leaf| leaf.give_up());
    }
}

impl Wake for ChainWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.is_woken.store(true, Ordering::Release);
        self.leaves.task.wake();
    }
}

/// Makes the leaves those of the current thread until it is dropped.
struct Entered(Option<Arc<Woken>>);

impl Entered {
    fn new(leaves: &Arc<Woken>) -> Self {
        Self(CURRENT.replace(Some(leaves.clone())))
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        CURRENT.set(self.0.take());
    }
}

impl<T: Send + 'static> Leaf<T> {
    pub(crate) fn new(call: BoxFuture<'static, T>) -> Self {
        Self(State::New(call))
    }
}

impl<T: Send + 'static> Future for Leaf<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        if let State::New(_) = self.0
            && let State::New(call) = mem::replace(&mut self.0, State::Ended)
        {
            self.0 = match CURRENT.with_borrow(|leaves| leaves.as_ref().map(Arc::downgrade)) {
                Some(leaves) => State::Shared(Slot::new(call, leaves)),
                None => State::Own(call),
            };
            if let State::Shared(slot) = &self.0 {
                slot.poll_call();
            }
        }
        let polled = match &mut self.0 {
            State::Own(call) => call.as_mut().poll(cx),
            State::Shared(slot) => slot.poll_result(cx),
            State::New(_) | State::Ended => Poll::Pending,
        };
        if polled.is_ready() {
            self.0 = State::Ended;
        }
        polled
    }
}

impl<T> Drop for Leaf<T> {
    fn drop(&mut self) {
        if let State::Shared(slot) = &self.0 {
            let dropped = mem::replace(&mut *lock(&slot.call), Call::Dropped);
            drop(dropped); // without the lock
        }
    }
}

impl<T: Send + 'static> Slot<T> {
    fn new(call: BoxFuture<'static, T>, leaves: Weak<Woken>) -> Arc<Self> {
        Arc::new_cyclic(|this| Self {
            call: Mutex::new(Call::Pending(call)),
            chain: AtomicWaker::new(),
            is_queued: AtomicBool::new(false),
            leaves,
            this: this.clone(),
            span: Span::current(),
        })
    }

    /// Polls the future, without the lock: it may drop the leaf.
    fn poll_call(&self) {
        let Some(this) = self.this.upgrade() else { return };
        let mut state = lock(&self.call);
        let mut call = match mem::replace(&mut *state, Call::Taken) {
            Call::Pending(call) => call,
            other => {
                *state = other;
                return;
            }
        };
        drop(state);
        self.is_queued.store(false, Ordering::Release);
        let waker = Waker::from(this);
        let polled = {
            let _span = self.span.enter();
            call.as_mut().poll(&mut Context::from_waker(&waker))
        };
        let mut state = lock(&self.call);
        if let Call::Taken = *state {
            *state = match polled {
                Poll::Ready(done) => Call::Done(done),
                Poll::Pending => Call::Pending(call),
            };
        }
        let is_done = matches!(*state, Call::Done(_));
        drop(state);
        if is_done {
            self.chain.wake();
        }
    }

    fn poll_result(&self, cx: &mut Context<'_>) -> Poll<T> {
        self.chain.register(cx.waker());
        if self.leaves.upgrade().is_none_or(|leaves| lock(&leaves.leaves).is_none()) {
            self.poll_call();
        }
        let mut state = lock(&self.call);
        match mem::replace(&mut *state, Call::Dropped) {
            Call::Done(done) => Poll::Ready(done),
            other => {
                *state = other;
                Poll::Pending
            }
        }
    }
}

impl<T: Send + 'static> Wake for Slot<T> {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.is_queued.swap(true, Ordering::AcqRel) {
            return;
        }
        match self.leaves.upgrade() {
            Some(leaves) if leaves.push(self) => leaves.task.wake(),
            _ => self.chain.wake(),
        }
    }
}

impl<T: Send + 'static> Resume for Slot<T> {
    fn resume(&self) {
        self.poll_call();
    }

    fn give_up(&self) {
        self.chain.wake();
    }
}

impl Woken {
    /// Queues a leaf; returns `false` if nobody polls leaves any more.
    fn push<T: Send + 'static>(&self, leaf: &Arc<Slot<T>>) -> bool {
        let mut leaves = lock(&self.leaves);
        let is_open = leaves.is_some();
        leaves.iter_mut().for_each(|leaves| leaves.push(leaf.clone()));
        is_open
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<T> fmt::Debug for WithLeaves<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WithLeaves").finish_non_exhaustive()
    }
}
