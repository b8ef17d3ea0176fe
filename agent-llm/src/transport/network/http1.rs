//! A connection that speaks HTTP/1.1.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

use bytes::Bytes;
use futures::{FutureExt, future::BoxFuture, task::AtomicWaker};
use http::{Request, Response};
use http_body_util::Full;
use hyper::{
    body::{Body, Frame, Incoming},
    client::conn::{TrySendError, http1},
};
use hyper_util::rt::TokioIo;
use tokio::{task::unconstrained, time::Instant};

use super::{connect::Stream, pool::Slot};

/// A request as hyper takes it.
pub(super) type Outgoing = Request<Full<Bytes>>;

/// What hyper makes of a request: the head of its answer; the error holds the request if nothing of it was sent.
pub(super) type Sent = Result<Response<Incoming>, TrySendError<Outgoing>>;

/// Nothing runs beside the calls: the one that has the connection moves its bytes whenever it is polled, and dropping the
/// connection closes it.
pub(super) struct Connection {
    sender: http1::SendRequest<Full<Bytes>>,
    driver: Driver,
    pub(super) opened: Instant,
    _slot: Slot,
}

impl Connection {
    /// Begins to speak HTTP.
    pub(super) async fn open(stream: Stream, slot: Slot) -> hyper::Result<Self> {
        let (sender, bytes) = http1::handshake(TokioIo::new(stream)).await?;
        Ok(Self { sender, driver: Driver::new(bytes.boxed()), opened: Instant::now(), _slot: slot })
    }

    /// Sends `request` and waits for the head of the answer.
    pub(super) async fn send(&mut self, request: Outgoing) -> Sent {
        let Self { sender, driver, .. } = self;
        let mut answer = std::pin::pin!(unconstrained(sender.try_send_request(request)));
        std::future::poll_fn(|cx| driver.poll(cx, |nobody| answer.as_mut().poll(nobody))).await
    }

    /// The next piece of the answer's body.
    pub(super) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
        body: &mut Incoming,
    ) -> Poll<Option<hyper::Result<Frame<Bytes>>>> {
        let mut brought = |nobody: &mut Context<'_>| Pin::new(&mut *body).poll_frame(nobody);
        // Most often it came with what was read before. Only the connection brings more: there is nobody to be woken by.
        match brought(&mut Context::from_waker(Waker::noop())) {
            Poll::Pending => self.driver.poll(cx, brought),
            ready @ Poll::Ready(_) => ready,
        }
    }

    /// True if it can take a request.
    pub(super) fn is_free(&self) -> bool {
        self.driver.bytes.is_some() && self.sender.is_ready()
    }
}

/// What reads and writes.
struct Driver {
    /// None once the connection is closed.
    bytes: Option<BoxFuture<'static, hyper::Result<()>>>,
    relay: Arc<Relay>,
    waker: Waker,
}

impl Driver {
    fn new(bytes: BoxFuture<'static, hyper::Result<()>>) -> Self {
        let relay = Arc::new(Relay::default());
        Self { bytes: Some(bytes), waker: relay.clone().into(), relay }
    }

    /// Reads and writes until `brought` is ready. Only the driver brings anything: `brought` need not wake anybody.
    fn poll<T>(&mut self, cx: &mut Context<'_>, mut brought: impl FnMut(&mut Context<'_>) -> Poll<T>) -> Poll<T> {
        loop {
            self.relay.begin();
            let mut relayed = Context::from_waker(&self.waker);
            if self.bytes.as_mut().is_some_and(|bytes| bytes.poll_unpin(&mut relayed).is_ready()) {
                self.bytes = None; // and with it what it held for whoever still waits, who so learns of the end
            }
            let wants_another_turn = self.relay.was_woken();
            if let Poll::Ready(brought) = brought(&mut Context::from_waker(Waker::noop())) {
                return Poll::Ready(brought);
            }
            self.relay.caller.register(cx.waker());
            if wants_another_turn {
                cx.waker().wake_by_ref(); // after others had theirs
                return Poll::Pending;
            }
            if !self.relay.was_woken() {
                return Poll::Pending;
            }
        }
    }
}

/// Wakes the call that waits. What a call takes wakes the driver to bring more, and the call is about to poll that itself:
/// with the relay between them it is not woken to do it once more.
#[derive(Default)]
struct Relay {
    /// None while it polls.
    caller: AtomicWaker,
    woken: AtomicBool,
}

impl Relay {
    fn begin(&self) {
        self.caller.take();
        self.woken.store(false, Ordering::Release);
    }

    fn was_woken(&self) -> bool {
        self.woken.load(Ordering::Acquire)
    }
}

impl Wake for Relay {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.woken.store(true, Ordering::Release);
        self.caller.wake();
    }
}
