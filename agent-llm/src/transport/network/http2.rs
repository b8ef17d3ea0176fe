//! HTTP/2 connections, which many calls share.

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

/// Maximum number of streams per connection, even if the server allows more.
const MOST_STREAMS: u32 = 128;

/// Flow-control window of one stream, in bytes. The windows of all streams together fit into the
/// connection's window, so that calls that do not read do not block others.
const WINDOW: u32 = 256 << 10;

pub(super) type Sender = http2::SendRequest<Full<Bytes>>;

/// A connection that accepts more calls.
pub(super) struct Shared {
    pub(super) id: u64,
    sender: Sender,
    /// Maximum number of concurrent streams, as announced by the server.
    most: Arc<AtomicUsize>,
    /// Number of open streams.
    streams: usize,
    pub(super) opened: Instant,
    /// Start of the current idle period, if idle.
    pub(super) idle_since: Instant,
}

impl Shared {
    /// Performs the HTTP/2 handshake; `pings` is the idle time after which the server is pinged.
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
            let _ = moved.await; // its calls notice the end themselves
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

    /// Opens a stream for one more call, if there is room.
    pub(super) fn join(&mut self) -> Option<Sender> {
        // A server that allows no streams still gets one: its connection may wait for a higher
        // limit.
        let most = self.most.load(Ordering::Relaxed).max(1);
        (self.streams < most).then(|| {
            self.streams += 1;
            self.sender.clone()
        })
    }

    /// Releases the stream of a finished call.
    pub(super) fn leave(&mut self) {
        self.streams -= 1;
        self.idle_since = Instant::now();
    }
}
