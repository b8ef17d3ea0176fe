//! Checked-out connections.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::Response;
use hyper::{
    body::{Body, Frame, Incoming},
    client::conn::TrySendError,
};

use super::{
    failure::is_refused,
    http1::{Connection, Outgoing},
    http2,
    pool::Origin,
};

/// A checked-out HTTP/1.1 connection, or one HTTP/2 stream. Dropping it before
/// [`finish`](Self::finish) cancels the call.
pub(super) struct Lease {
    origin: Arc<Origin>,
    held: Held,
    /// True if the connection was opened for this call.
    pub(super) is_new: bool,
}

pub(super) enum Held {
    /// HTTP/1.1 connection.
    Alone(Connection),
    /// HTTP/2 stream.
    StreamPermit(StreamPermit),
}

/// A stream of a shared connection.
pub(super) struct StreamPermit {
    pub(super) origin: Arc<Origin>,
    /// Id of the connection.
    pub(super) id: u64,
    pub(super) sender: http2::Sender,
}

/// Reason why a request has no response.
pub(super) enum Unanswered {
    /// The connection was closed before anything of the request was sent.
    Unsent(Outgoing, hyper::Error),
    /// The server states that it did not process the request.
    Refused(Outgoing, hyper::Error),
    /// It is unknown whether the server processed the request.
    Lost(hyper::Error),
}

impl Unanswered {
    /// Classifies the error. `kept` is a copy of the request, if the server may refuse it
    /// unprocessed.
    fn of(mut e: TrySendError<Outgoing>, kept: Option<Outgoing>) -> Self {
        match (e.take_message(), kept) {
            (Some(unsent), _) => Self::Unsent(unsent, e.into_error()),
            (None, Some(kept)) if is_refused(e.error()) => Self::Refused(kept, e.into_error()),
            (None, _) => Self::Lost(e.into_error()),
        }
    }

    pub(super) fn why(self) -> hyper::Error {
        match self {
            Self::Unsent(_, e) | Self::Refused(_, e) | Self::Lost(e) => e,
        }
    }
}

impl Lease {
    pub(super) fn new(origin: Arc<Origin>, held: Held, is_new: bool) -> Self {
        Self { origin, held, is_new }
    }

    /// Sends `request` and waits for the head of the response.
    pub(super) async fn send(&mut self, mut request: Outgoing) -> Result<Response<Incoming>, Unanswered> {
        match &mut self.held {
            Held::Alone(connection) => {
                self.origin.address.address_for_http1(&mut request);
                connection.send(request).await.map_err(|e| Unanswered::of(e, None))
            }
            Held::StreamPermit(seat) => {
                self.origin.address.address_for_http2(&mut request);
                let kept = request.clone(); // its body is shared
                seat.sender.try_send_request(request).await.map_err(|e| Unanswered::of(e, Some(kept)))
            }
        }
    }

    /// Polls the next frame of the response body.
    pub(super) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
        body: &mut Incoming,
    ) -> Poll<Option<hyper::Result<Frame<Bytes>>>> {
        match &mut self.held {
            Held::Alone(connection) => connection.poll_frame(cx, body),
            Held::StreamPermit(_) => Pin::new(body).poll_frame(cx),
        }
    }

    /// Completes the call: the connection returns to the pool, if it can take another.
    pub(super) fn finish(self) {
        match self.held {
            Held::Alone(connection) if connection.is_free() => self.origin.keep(connection),
            _ => {}
        }
    }
}

impl Drop for StreamPermit {
    fn drop(&mut self) {
        self.origin.leave(self.id);
    }
}
