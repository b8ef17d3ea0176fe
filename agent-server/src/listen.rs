//! Connections: how many, how large their heads may be, and how long they may take.

use std::{io, pin::pin, sync::Arc, time::Duration};

use axum::Router;
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::{conn::auto, graceful::GracefulShutdown},
    service::TowerToHyperService,
};
use tokio::{net::TcpListener, sync::Semaphore};

/// How long the head of a request may take.
const HEAD: Duration = Duration::from_secs(10);
/// Bytes of it at most.
const HEAD_BYTES: usize = 64 << 10;
/// Headers at most.
const HEADERS: usize = 100;
/// How long connections have to end by themselves when the server does.
const GRACE: Duration = Duration::from_secs(5);

/// Answers requests until `shutdown` is ready, and then no more.
///
/// # Errors
/// Those of the listener, but for such as concern one connection.
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
                // No more files can be opened, say: somebody goes soon.
                Err(error) => {
                    let error: io::Error = error;
                    tracing::warn!(%error, "a connection was not taken");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
            },
            () = &mut shutdown => break,
        };
        // A small event must not wait for the next one.
        let _ = stream.set_nodelay(true);
        let service = TowerToHyperService::new(router.clone());
        let connection = server.serve_connection(TokioIo::new(stream), service).into_owned();
        let connection = graceful.watch(connection);
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(error, "a connection broke");
            }
            drop(permit);
        });
    }
    drop(listener);
    // Whoever does not end by then is cut off with the process.
    let _ = tokio::time::timeout(GRACE, graceful.shutdown()).await;
    Ok(())
}

fn server() -> auto::Builder<TokioExecutor> {
    let mut server = auto::Builder::new(TokioExecutor::new());
    // Without it a connection that says nothing is waited for without end: which version it speaks, it never says.
    server = server.http1_only();
    let mut http1 = server.http1();
    http1.timer(TokioTimer::new()).header_read_timeout(HEAD).max_headers(HEADERS).max_buf_size(HEAD_BYTES);
    server
}
