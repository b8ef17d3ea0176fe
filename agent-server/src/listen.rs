//! HTTP connections and their limits.

mod progress;

use std::{io, pin::pin, sync::Arc, time::Duration};

use axum::Router;
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::{conn::auto, graceful::GracefulShutdown},
    service::TowerToHyperService,
};
use tokio::{net::TcpListener, sync::Semaphore};

use self::progress::Progressing;

/// Timeout of a request head.
const HEAD: Duration = Duration::from_secs(10);
/// Maximum time without progress while a response is written: a client that reads nothing must not
/// hold its connection.
const WRITE: Duration = Duration::from_secs(30);
/// Maximum size of a request head in bytes.
const HEAD_BYTES: usize = 64 << 10;
/// Maximum number of headers.
const HEADERS: usize = 100;
/// Time that connections have to finish on shutdown.
const GRACE: Duration = Duration::from_secs(5);

/// Serves requests until `shutdown` completes, and then drains the connections.
///
/// # Errors
/// The errors of the listener, except those of a single connection.
pub(crate) async fn serve(
    listener: TcpListener,
    router: Router,
    connections: usize,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()> {
    let (permits, graceful) = (Arc::new(Semaphore::new(connections)), GracefulShutdown::new());
    let mut shutdown = pin!(shutdown);
    let server = server();
    loop {
        let next = async {
            let permit = permits.clone().acquire_owned().await.map_err(io::Error::other)?;
            Ok((listener.accept().await?.0, permit))
        };
        let (stream, permit) = tokio::select! {
            next = next => match next {
                Ok(next) => next,
                // For example no file descriptors: retry until connections close.
                Err(error) => {
                    let error: io::Error = error;
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
            },
            () = &mut shutdown => break,
        };
        // Small events must not be delayed by Nagle's algorithm.
        let _ = stream.set_nodelay(true);
        let service = TowerToHyperService::new(router.clone());
        let stream = TokioIo::new(Progressing::new(stream, WRITE));
        let connection = server.serve_connection(stream, service).into_owned();
        let connection = graceful.watch(connection);
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(error, "a connection broke");
            }
            drop(permit);
        });
    }
    drop(listener);
    // Connections that remain are closed with the process.
    let _ = tokio::time::timeout(GRACE, graceful.shutdown()).await;
    Ok(())
}

fn server() -> auto::Builder<TokioExecutor> {
    let mut server = auto::Builder::new(TokioExecutor::new());
    // The protocol detection of HTTP/1 and HTTP/2 would wait without a timeout on a silent
    // connection.
    server = server.http1_only();
    let mut http1 = server.http1();
    http1.timer(TokioTimer::new()).header_read_timeout(HEAD).max_headers(HEADERS).max_buf_size(HEAD_BYTES);
    server
}
