//! The bodies of answers.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use agent_core::{Error, ErrorKind, Result, Retry};
use bytes::Bytes;
use futures::Stream;

use super::{
    body::{Framing, Taken},
    connection::Connection,
    origin::Origin,
};

/// The body of an answer. At its end the connection is left to the next request; dropped before, it is closed.
pub(super) struct Answer {
    /// None when the body is over.
    connection: Option<Connection>,
    framing: Framing,
    /// Where the connection is kept; nowhere if it does not stay open.
    origin: Option<Arc<Origin>>,
}

impl Answer {
    pub(super) fn new(connection: Connection, framing: Framing, origin: Option<Arc<Origin>>) -> Self {
        Self { connection: Some(connection), framing, origin }
    }

    /// The body is over, and the connection with it, unless it can be used again.
    fn end(&mut self) {
        if let (Some(connection), Some(origin)) = (self.connection.take(), &self.origin) {
            origin.keep(connection);
        }
    }
}

impl Stream for Answer {
    type Item = Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes>>> {
        let this = &mut *self;
        loop {
            let Some(connection) = &mut this.connection else { return Poll::Ready(None) };
            match this.framing.take(&mut connection.read) {
                Ok(Taken::Data(data)) => return Poll::Ready(Some(Ok(data))),
                Ok(Taken::End) => {
                    this.end();
                    return Poll::Ready(None);
                }
                Ok(Taken::Nothing) => {}
                Err(malformed) => {
                    this.connection = None;
                    return Poll::Ready(Some(Err(malformed.into())));
                }
            }
            let read = ready!(connection.poll_read(cx));
            if let Ok(1..) = read {
                continue;
            }
            this.connection = None;
            return Poll::Ready(match read {
                Ok(_) if this.framing == Framing::UntilClose => None,
                Ok(_) => Some(Err(broken_body(io::ErrorKind::UnexpectedEof.into()))),
                Err(e) => Some(Err(broken_body(e))),
            });
        }
    }
}

fn broken_body(e: io::Error) -> Error {
    let (kind, message) = if e.kind() == io::ErrorKind::UnexpectedEof {
        (ErrorKind::Truncated, "the answer ended before it was complete")
    } else {
        (ErrorKind::Transport, "the connection broke in the middle of the answer")
    };
    Error::new(kind, message).with_retry(Retry::Temporary(None)).with_source(e)
}
