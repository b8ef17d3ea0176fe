//! One connection.

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
    body::Incoming,
    client::conn::{TrySendError, http1},
    rt::{Read, Write},
};
use pin_project_lite::pin_project;
use tokio::task::unconstrained;

/// An open connection. Nothing runs beside the calls: the one that has the connection moves its bytes whenever it is
/// polled, and dropping the connection closes it.
pub(super) struct Connection {
    sender: http1::SendRequest<Full<Bytes>>,
    driver: Driver,
}

impl Connection {
    /// Begins to speak HTTP.
    pub(super) async fn open(io: impl Read + Write + Unpin + Send + 'static) -> hyper::Result<Self> {
        let (sender, bytes) = http1::handshake(io).await?;
        Ok(Self { sender, driver: Driver::new(bytes.boxed()) })
    }

    /// Sends `request` and waits for the head of the answer. The error holds the request if nothing of it was sent.
    pub(super) fn send(
        &mut self,
        request: Request<Full<Bytes>>,
    ) -> impl Future<Output = Result<Response<Incoming>, TrySendError<Request<Full<Bytes>>>>> {
        let Self { sender, driver } = self;
        Exchange { driver, answer: unconstrained(sender.try_send_request(request)) }
    }

    /// Moves bytes until `brought` is ready.
    pub(super) fn poll<T>(
        &mut self,
        cx: &mut Context<'_>,
        brought: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        self.driver.poll(cx, brought)
    }

    /// True if it can take a request.
    pub(super) fn is_free(&self) -> bool {
        self.driver.bytes.is_some() && self.sender.is_ready()
    }
}

pin_project! {
    /// A request that was sent, until the head of its answer is there.
    struct Exchange<'a, F> {
        driver: &'a mut Driver,
        #[pin]
        answer: F,
    }
}

impl<F: Future> Future for Exchange<'_, F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let mut this = self.project();
        this.driver.poll(cx, |nobody| this.answer.as_mut().poll(nobody))
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
