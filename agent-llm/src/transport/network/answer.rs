//! Response bodies.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use agent_core::Result;
use bytes::Bytes;
use futures::Stream;
use hyper::body::Incoming;

use super::{failure::broken_body, lease::Lease};

/// Response body. At its end the connection returns to the pool; dropping it earlier cancels the
/// call.
pub(super) struct Answer {
    body: Incoming,
    /// `None` once the body has ended.
    lease: Option<Lease>,
}

impl Answer {
    pub(super) fn new(body: Incoming, lease: Lease) -> Self {
        Self { body, lease: Some(lease) }
    }
}

impl Stream for Answer {
    type Item = Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes>>> {
        let Self { body, lease } = &mut *self;
        loop {
            let Some(held) = lease else { return Poll::Ready(None) };
            match ready!(held.poll_frame(cx, body)) {
                Some(Ok(frame)) => {
                    // Trailers are ignored.
                    if let Ok(data) = frame.into_data() {
                        return Poll::Ready(Some(Ok(data)));
                    }
                }
                Some(Err(e)) => {
                    *lease = None;
                    return Poll::Ready(Some(Err(broken_body(e))));
                }
                None => {
                    if let Some(over) = lease.take() {
                        over.finish();
                    }
                    return Poll::Ready(None);
                }
            }
        }
    }
}
