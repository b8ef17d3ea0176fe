//! One connection.

use std::{
    future::poll_fn,
    pin::pin,
    task::{Context, Waker},
};

use bytes::Bytes;
use futures::{FutureExt, future::BoxFuture};
use http::{Request, Response};
use http_body_util::Full;
use hyper::{
    body::Incoming,
    client::conn::{TrySendError, http1},
    rt::{Read, Write},
};
use tokio::task::unconstrained;

/// An open connection. Nothing runs beside the calls: the one that has the connection moves its bytes whenever it is
/// polled, and dropping the connection closes it.
pub(super) struct Connection {
    sender: http1::SendRequest<Full<Bytes>>,
    /// Reads and writes; none once the connection is closed.
    driver: Option<BoxFuture<'static, hyper::Result<()>>>,
}

impl Connection {
    /// Begins to speak HTTP.
    pub(super) async fn open(io: impl Read + Write + Unpin + Send + 'static) -> hyper::Result<Self> {
        let (sender, driver) = http1::handshake(io).await?;
        Ok(Self { sender, driver: Some(driver.boxed()) })
    }

    /// Sends `request` and waits for the head of the answer. The error holds the request if nothing of it was sent.
    pub(super) async fn send(
        &mut self,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<Incoming>, TrySendError<Request<Full<Bytes>>>> {
        let answer = self.sender.try_send_request(request);
        let mut answer = pin!(unconstrained(answer));
        poll_fn(|cx| {
            drive(&mut self.driver, cx);
            // Only the driver can bring it: there is nobody to be woken by.
            answer.as_mut().poll(&mut Context::from_waker(Waker::noop()))
        })
        .await
    }

    /// Reads and writes as much as can be now.
    pub(super) fn drive(&mut self, cx: &mut Context<'_>) {
        drive(&mut self.driver, cx);
    }

    /// True if it can take a request.
    pub(super) fn is_free(&mut self, cx: &mut Context<'_>) -> bool {
        if !self.sender.is_ready() {
            self.drive(cx);
        }
        self.driver.is_some() && self.sender.is_ready()
    }
}

/// A driver that is done is dropped: with it goes what it held for whoever still waits, who so learns of the end.
fn drive(driver: &mut Option<BoxFuture<'static, hyper::Result<()>>>, cx: &mut Context<'_>) {
    if driver.as_mut().is_some_and(|driver| driver.poll_unpin(cx).is_ready()) {
        *driver = None;
    }
}
