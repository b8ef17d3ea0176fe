//! What a call holds of a connection.

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

/// A connection of a call's own, or a seat on one that it shares. Dropped before [`finish`](Self::finish), the call is
/// cancelled.
pub(super) struct Lease {
    origin: Arc<Origin>,
    held: Held,
    /// It was opened for this call.
    pub(super) is_new: bool,
}

pub(super) enum Held {
    /// HTTP/1.1.
    Alone(Connection),
    /// HTTP/2.
    Seat(Seat),
}

/// A place among the calls of a connection.
pub(super) struct Seat {
    pub(super) origin: Arc<Origin>,
    /// The connection's.
    pub(super) id: u64,
    pub(super) sender: http2::Sender,
}

/// Why a request has no answer.
pub(super) enum Unanswered {
    /// The connection was closed before anything of the request was sent.
    Unsent(Outgoing, hyper::Error),
    /// The server says that it has done nothing with the request.
    Refused(Outgoing, hyper::Error),
    /// Nobody knows what the server has done with the request.
    Lost(hyper::Error),
}

impl Unanswered {
    /// `kept` is the request once more, if it is one that a server can refuse.
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

    /// Sends `request` and waits for the head of the answer.
    pub(super) async fn send(&mut self, mut request: Outgoing) -> Result<Response<Incoming>, Unanswered> {
        match &mut self.held {
            Held::Alone(connection) => {
                self.origin.address.address_for_http1(&mut request);
                connection.send(request).await.map_err(|e| Unanswered::of(e, None))
            }
            Held::Seat(seat) => {
                self.origin.address.address_for_http2(&mut request);
                let kept = request.clone(); // its body is shared
                seat.sender.try_send_request(request).await.map_err(|e| Unanswered::of(e, Some(kept)))
            }
        }
    }

    /// The next piece of the answer's body.
    pub(super) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
        body: &mut Incoming,
    ) -> Poll<Option<hyper::Result<Frame<Bytes>>>> {
        match &mut self.held {
            Held::Alone(connection) => connection.poll_frame(cx, body),
            Held::Seat(_) => Pin::new(body).poll_frame(cx),
        }
    }

    /// The answer is over: the connection is left to the next call, if it can take it.
    pub(super) fn finish(self) {
        match self.held {
            Held::Alone(connection) if connection.is_free() => self.origin.keep(connection),
            _ => {}
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.origin.leave(self.id);
    }
}
