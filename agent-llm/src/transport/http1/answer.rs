//! The bodies of answers.

use std::{
    error::Error as _,
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker, ready},
};

use agent_core::{Error, ErrorKind, Result, Retry};
use bytes::Bytes;
use futures::Stream;
use hyper::body::{Body, Frame, Incoming};

use super::{connection::Connection, origin::Origin};

/// The body of an answer. At its end the connection is left to the next request; dropped before, it is closed.
pub(super) struct Answer {
    body: Incoming,
    connection: Option<Connection>,
    origin: Arc<Origin>,
}

impl Answer {
    pub(super) fn new(body: Incoming, connection: Connection, origin: Arc<Origin>) -> Self {
        Self { body, connection: Some(connection), origin }
    }

    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<hyper::Result<Frame<Bytes>>>> {
        let mut brought = |nobody: &mut Context<'_>| Pin::new(&mut self.body).poll_frame(nobody);
        // Most often it came with what was read before. Only the connection brings more: there is nobody to be woken by.
        let before = brought(&mut Context::from_waker(Waker::noop()));
        match &mut self.connection {
            Some(connection) if before.is_pending() => connection.poll(cx, brought),
            _ => before,
        }
    }
}

impl Stream for Answer {
    type Item = Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes>>> {
        loop {
            match ready!(self.poll_frame(cx)) {
                Some(Ok(frame)) => {
                    // Trailers say nothing that anybody asked for.
                    if let Ok(data) = frame.into_data() {
                        return Poll::Ready(Some(Ok(data)));
                    }
                }
                Some(Err(e)) => return Poll::Ready(Some(Err(broken_body(e)))),
                None => {
                    if let Some(connection) = self.connection.take_if(|connection| connection.is_free()) {
                        self.origin.keep(connection);
                    }
                    return Poll::Ready(None);
                }
            }
        }
    }
}

fn broken_body(e: hyper::Error) -> Error {
    let (kind, message) = if is_cut(&e) {
        (ErrorKind::Truncated, "the answer ended before it was complete")
    } else {
        (ErrorKind::Transport, "the connection broke in the middle of the answer")
    };
    Error::new(kind, message).with_retry(Retry::Temporary(None)).with_source(e)
}

/// True if the server closed the connection early, as opposed to a connection that failed.
fn is_cut(e: &hyper::Error) -> bool {
    let cause = e.source().and_then(|cause| cause.downcast_ref::<io::Error>());
    e.is_incomplete_message() || cause.is_some_and(|cause| cause.kind() == io::ErrorKind::UnexpectedEof)
}
