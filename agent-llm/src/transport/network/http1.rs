//! HTTP/1.1 connections.

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

/// A request in hyper's type.
pub(super) type Outgoing = Request<Full<Bytes>>;

/// Result of sending a request: the head of the response; the error contains the request if nothing
/// of it was sent.
pub(super) type Sent = Result<Response<Incoming>, TrySendError<Outgoing>>;

/// HTTP/1.1 connection without a background task: the call that holds the connection drives its I/O
/// whenever it is polled, and dropping the connection closes it.
pub(super) struct Connection {
    sender: http1::SendRequest<Full<Bytes>>,
    driver: Driver,
    pub(super) opened: Instant,
    _slot: Slot,
}

impl Connection {
    /// Performs the HTTP handshake.
    pub(super) async fn open(stream: Stream, slot: Slot) -> hyper::Result<Self> {
        let (sender, bytes) = http1::handshake(TokioIo::new(stream)).await?;
        Ok(Self { sender, driver: Driver::new(bytes.boxed()), opened: Instant::now(), _slot: slot })
    }

    /// Sends `request` and waits for the head of the response.
    pub(super) async fn send(&mut self, request: Outgoing) -> Sent {
        let Self { sender, driver, .. } = self;
        let mut answer = std::pin::pin!(unconstrained(sender.try_send_request(request)));
        std::future::poll_fn(|cx| driver.poll(cx, |nobody| answer.as_mut().poll(nobody))).await
    }

    /// Polls the next frame of the response body.
    pub(super) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
        body: &mut Incoming,
    ) -> Poll<Option<hyper::Result<Frame<Bytes>>>> {
        let mut brought = |nobody: &mut Context<'_>| Pin::new(&mut *body).poll_frame(nobody);
        // The frame has usually been read already. Otherwise only the driver produces more, so no
        // waker is needed.
        match brought(&mut Context::from_waker(Waker::noop())) {
            Poll::Pending => self.driver.poll(cx, brought),
            ready @ Poll::Ready(_) => ready,
        }
    }

    /// Returns true if the connection can take a request.
    pub(super) fn is_free(&self) -> bool {
        self.driver.bytes.is_some() && self.sender.is_ready()
    }
}

/// Drives the connection's I/O.
struct Driver {
    /// `None` once the connection is closed.
    bytes: Option<BoxFuture<'static, hyper::Result<()>>>,
    relay: Arc<Relay>,
    waker: Waker,
}

impl Driver {
    fn new(bytes: BoxFuture<'static, hyper::Result<()>>) -> Self {
        let relay = Arc::new(Relay::default());
        Self { bytes: Some(bytes), waker: relay.clone().into(), relay }
    }

    /// Drives I/O until `brought` is ready. Only the driver makes progress, so `brought` need not
    /// register a waker.
    fn poll<T>(&mut self, cx: &mut Context<'_>, mut brought: impl FnMut(&mut Context<'_>) -> Poll<T>) -> Poll<T> {
        loop {
            self.relay.begin();
            let mut relayed = Context::from_waker(&self.waker);
            if self.bytes.as_mut().is_some_and(|bytes| bytes.poll_unpin(&mut relayed).is_ready()) {
                self.bytes = None; // drops its channels, which reports the end to a waiting call
            }
            let wants_another_turn = self.relay.was_woken();
            if let Poll::Ready(brought) = brought(&mut Context::from_waker(Waker::noop())) {
                return Poll::Ready(brought);
            }
            self.relay.caller.register(cx.waker());
            if wants_another_turn {
                cx.waker().wake_by_ref(); // lets other tasks run first
                return Poll::Pending;
            }
            if !self.relay.was_woken() {
                return Poll::Pending;
            }
        }
    }
}

/// Wakes the waiting call. Consuming a frame wakes the driver, which the same call is about to poll
/// anyway: the relay suppresses that redundant wake-up.
#[derive(Default)]
struct Relay {
    /// Empty while the call polls.
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
