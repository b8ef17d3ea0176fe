//! A connection that speaks HTTP/2, which many calls share.

use std::{
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::time::Instant;

use super::{connect::Stream, pool::Slot};

/// The most calls on one connection, however many the server would take.
const MOST_STREAMS: u32 = 128;

/// Bytes of an answer that may come before its call reads them. All of them together fit into the connection's own window:
/// calls that do not read hold up no others.
const WINDOW: u32 = 256 << 10;

pub(super) type Sender = http2::SendRequest<Full<Bytes>>;

/// A connection in the list of those that take more calls.
pub(super) struct Shared {
    pub(super) id: u64,
    sender: Sender,
    /// How many calls the server takes at once, as far as it has said so.
    most: Arc<AtomicUsize>,
    /// How many there are.
    streams: usize,
    pub(super) opened: Instant,
    /// Since when there are none, if there are none.
    pub(super) idle_since: Instant,
}

impl Shared {
    /// Begins to speak HTTP/2; `pings` is the silence after which the server is asked for a sign of life.
    pub(super) async fn open(stream: Stream, pings: Option<Duration>, id: u64, slot: Slot) -> hyper::Result<Self> {
        let (sender, connection) = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .initial_stream_window_size(WINDOW)
            .initial_connection_window_size(WINDOW * MOST_STREAMS)
            .keep_alive_interval(pings)
            .handshake(TokioIo::new(stream))
            .await?;
        let most = Arc::new(AtomicUsize::new(MOST_STREAMS as usize));
        let told = most.clone();
        tokio::spawn(async move {
            let _slot = slot;
            let mut connection = pin!(connection);
            let moved = std::future::poll_fn(|cx| {
                let over = connection.as_mut().poll(cx);
                told.store(connection.current_max_send_streams().min(MOST_STREAMS as usize), Ordering::Relaxed);
                over
            });
            let _ = moved.await; // the calls on it learn of its end themselves
        });
        let now = Instant::now();
        Ok(Self { id, sender, most, streams: 0, opened: now, idle_since: now })
    }

    pub(super) fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }

    pub(super) fn is_idle(&self) -> bool {
        self.streams == 0
    }

    /// Takes one more call, if there is room for it.
    pub(super) fn join(&mut self) -> Option<Sender> {
        // A server that takes none at all is asked all the same: its connection may wait for better times.
        let most = self.most.load(Ordering::Relaxed).max(1);
        (self.streams < most).then(|| {
            self.streams += 1;
            self.sender.clone()
        })
    }

    /// One of its calls is over.
    pub(super) fn leave(&mut self) {
        self.streams -= 1;
        self.idle_since = Instant::now();
    }
}
