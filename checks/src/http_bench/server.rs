//! Server on a dedicated thread.

use std::{
    convert::Infallible,
    io,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use bytes::Bytes;
use futures::{StreamExt, stream};
use http::{Request, Response};
use http_body_util::StreamBody;
use hyper::{
    body::{Frame, Incoming},
    server::conn::{http1, http2},
    service::service_fn,
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::{net::TcpListener, sync::oneshot};

/// Piece of a response: an event of about the size that models send.
pub(super) const PIECE: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a few words more\"}}]}\n\n";

/// Streaming server, stopped when dropped.
pub(super) struct Server {
    url: String,
    connections: Arc<AtomicUsize>,
    _over: oneshot::Sender<()>,
}

impl Server {
    /// Starts serving on a free port.
    pub(super) async fn start(is_http2: bool, pieces: usize, pause: Duration) -> io::Result<Self> {
        let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
        listener.set_nonblocking(true)?;
        let (url, connections) = (format!("http://{}/v1", listener.local_addr()?), Arc::<AtomicUsize>::default());
        let (over, stopped) = oneshot::channel();
        let count = connections.clone();
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async {
                tokio::select! {
                    _ = stopped => {}
                    () = serve(listener, is_http2, pieces, pause, &count) => {}
                }
            });
        });
        Ok(Self { url, connections, _over: over })
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// Returns the number of opened connections.
    pub(super) fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }
}

async fn serve(listener: std::net::TcpListener, is_http2: bool, pieces: usize, pause: Duration, count: &AtomicUsize) {
    let listener = TcpListener::from_std(listener).expect("a socket");
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        count.fetch_add(1, Ordering::Relaxed);
        let _ = stream.set_nodelay(true);
        let io = TokioIo::new(stream);
        let answer = service_fn(move |_: Request<Incoming>| async move {
            let pieces = stream::iter(0..pieces).then(move |_| async move {
                tokio::time::sleep(pause).await;
                Ok::<_, Infallible>(Frame::data(Bytes::from_static(PIECE.as_bytes())))
            });
            Ok::<_, Infallible>(Response::new(StreamBody::new(pieces.boxed())))
        });
        tokio::spawn(async move {
            match is_http2 {
                true => drop(http2::Builder::new(TokioExecutor::new()).serve_connection(io, answer).await),
                false => drop(http1::Builder::new().serve_connection(io, answer).await),
            }
        });
    }
}
