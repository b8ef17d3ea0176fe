//! The bodies of answers.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use agent_core::Result;
use bytes::Bytes;
use futures::Stream;
use hyper::body::Incoming;

use super::{failure::broken_body, lease::Lease};

/// The body of an answer. At its end the connection is left to the next request; dropped before, the call is cancelled.
pub(super) struct Answer {
    body: Incoming,
    /// None when the body is over.
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
                    // Trailers say nothing that anybody asked for.
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
