//! What a call holds of a connection.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming};

use super::{
    http1::{Connection, Outgoing, Sent},
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

impl Lease {
    pub(super) fn new(origin: Arc<Origin>, held: Held, is_new: bool) -> Self {
        Self { origin, held, is_new }
    }

    /// Sends `request` and waits for the head of the answer.
    pub(super) async fn send(&mut self, mut request: Outgoing) -> Sent {
        match &mut self.held {
            Held::Alone(connection) => {
                self.origin.address.address_for_http1(&mut request);
                connection.send(request).await
            }
            Held::Seat(seat) => {
                self.origin.address.address_for_http2(&mut request);
                seat.sender.try_send_request(request).await
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
