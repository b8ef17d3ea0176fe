//! Streamable HTTP server.

use std::{convert::Infallible, fmt, net::SocketAddr, sync::Arc, time::Duration};

use agent_core::{Error, ErrorKind, Result};
use bytes::Bytes;
use futures::{StreamExt, stream::BoxStream};
use http::{HeaderValue, Request, Response, StatusCode, header::AUTHORIZATION};
use http_body_util::{BodyDataStream, BodyExt, Full, LengthLimitError, Limited, combinators::BoxBody};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use rmcp::transport::{
    StreamableHttpServerConfig, StreamableHttpService, streamable_http_server::session::local::LocalSessionManager,
};
use sha2::{Digest, Sha256};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
};
use tokio_util::sync::CancellationToken;

use super::{
    Server,
    accept::Accepts,
    handler::Handler,
    sessions::{self, Sessions},
};

type Service = StreamableHttpService<Handler, LocalSessionManager>;

pub(super) type Answer = Response<BoxBody<Bytes, Infallible>>;

/// Maximum of concurrent connections, and of sessions.
const MOST: usize = 1024;

/// Maximum size of a request in bytes.
const LARGEST: usize = 4 * 1024 * 1024;

/// Timeout for the head of a request, and idle timeout of a connection.
const HEAD: Duration = Duration::from_secs(30);

/// Timeout for the body of a request.
const BODY: Duration = Duration::from_secs(60);

/// [`Server`] at an address of this machine. Dropping it stops serving.
#[derive(Debug)]
pub struct HttpServer {
    address: SocketAddr,
    service: HttpService,
}

/// Service that answers streamable HTTP requests: made by [`Server::http_service`]. Cheap to clone.
#[derive(Clone)]
pub struct HttpService(Arc<Answering>);

struct Answering {
    service: Service,
    sessions: Arc<Sessions>,
    server: Server,
    stop: CancellationToken,
}

impl Server {
    /// Serves streamable HTTP at this address, such as `127.0.0.1:8000`, at every path. Port 0
    /// selects a free port. Use a reverse proxy for TLS.
    ///
    /// Limits: 1024 concurrent connections, 1024 sessions, 4 MiB per request. An idle session
    /// expires after five minutes, and its client begins another one.
    ///
    /// # Errors
    /// [`ErrorKind::Transport`] if the address cannot be bound.
    pub async fn serve_http(&self, address: SocketAddr) -> Result<HttpServer> {
        self.serve_at(address, MOST, MOST).await
    }

    async fn serve_at(&self, address: SocketAddr, connections: usize, most_sessions: usize) -> Result<HttpServer> {
        let failed = |e| Error::new(ErrorKind::Transport, format!("nothing can be served at {address}")).with_source(e);
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        // A web page in a browser must not be a client, unless its origin is this machine or a
        // configured host.
        let mut config = StreamableHttpServerConfig::default().enforce_origin_validation();
        config.allowed_hosts.extend(self.0.about.hosts.iter().cloned());
        let local = ["localhost", "127.0.0.1", "[::1]"].map(|host| format!("http://{host}:*"));
        let named = self
            .0
            .about
            .hosts
            .iter()
            .map(|host| host.split(':').next().unwrap_or(host))
            .map(|host| format!("https://{host}:*"));
        config.allowed_origins = local.into_iter().chain(named).collect();
        let service = HttpService::new(self.clone(), config, most_sessions);
        let accepting = accept(listener, Arc::new(Semaphore::new(connections)), service.clone());
        tokio::spawn(service.0.stop.clone().run_until_cancelled_owned(accepting));
        Ok(HttpServer { address, service })
    }

    /// Returns a service that answers streamable HTTP requests within an application, which must
    /// authenticate clients itself: neither hosts, nor origins, nor a token are checked. Sessions
    /// behave as with [`serve_http`](Self::serve_http), and end when the service is dropped with
    /// all its clones. Must be called within a runtime.
    pub fn http_service(&self) -> HttpService {
        let config = StreamableHttpServerConfig::default().disable_allowed_hosts();
        HttpService::new(self.clone(), config, MOST)
    }

    /// Returns true if the request is authorised.
    fn admits<B>(&self, request: &Request<B>) -> bool {
        let Some(bearer) = &self.0.about.bearer else { return true };
        let given = request.headers().get(AUTHORIZATION).map(HeaderValue::as_bytes).unwrap_or_default();
        // Comparing digests avoids a timing side channel on the token.
        Sha256::digest(given) == Sha256::digest(format!("Bearer {}", bearer.expose()))
    }
}

impl HttpServer {
    /// Returns the bound address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        // The accepting task holds a clone of the service.
        self.service.0.stop.cancel();
    }
}

impl HttpService {
    fn new(server: Server, mut config: StreamableHttpServerConfig, most_sessions: usize) -> Self {
        let (sessions, stop) = (Sessions::new(most_sessions), CancellationToken::new());
        config.cancellation_token = stop.child_token();
        let handled = server.clone();
        let service = Service::new(move || Ok(handled.handler()), sessions.manager.clone(), config);
        tokio::spawn(stop.clone().run_until_cancelled_owned(sessions.clone().watch()));
        Self(Arc::new(Answering { service, sessions, server, stop }))
    }

    /// Answers a request, whatever its path; the response body is streamed.
    pub async fn answer(&self, request: Request<Bytes>) -> Response<BoxStream<'static, Bytes>> {
        let answer = self.0.answer(request.map(Full::new)).await;
        answer.map(|body| BodyDataStream::new(body).map(|bytes| bytes.unwrap_or_else(|never| match never {})).boxed())
    }
}

impl fmt::Debug for HttpService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpService").field("server", &self.0.server).finish_non_exhaustive()
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

async fn accept(listener: TcpListener, room: Arc<Semaphore>, service: HttpService) {
    loop {
        // At the connection limit, new clients wait in the system's accept queue.
        let Ok(place) = room.clone().acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => {
                let serving = connection(stream, service.clone());
                tokio::spawn(service.0.stop.clone().run_until_cancelled_owned(async move {
                    serving.await;
                    drop(place);
                }));
            }
            Err(error) => {
                tracing::warn!(%error, "a connection could not be taken");
                // Most likely out of file descriptors, some of which are soon released.
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

async fn connection(stream: TcpStream, service: HttpService) {
    let answer = service_fn(|request: Request<Incoming>| {
        let service = service.clone();
        async move { Ok::<_, Infallible>(service.0.received(request).await) }
    });
    let mut http = hyper::server::conn::http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD);
    if let Err(error) = http.serve_connection(TokioIo::new(stream), answer).await {
        tracing::debug!(%error, "a client of an MCP server went away");
    }
}

impl Answering {
    /// Answers a request of a connection, if it is authorised.
    async fn received(&self, request: Request<Incoming>) -> Answer {
        if !self.server.admits(&request) {
            return refusal(StatusCode::UNAUTHORIZED);
        }
        let (head, body) = request.into_parts();
        match tokio::time::timeout(BODY, Limited::new(body, LARGEST).collect()).await {
            Err(_) => refusal(StatusCode::REQUEST_TIMEOUT),
            Ok(Err(error)) if error.is::<LengthLimitError>() => refusal(StatusCode::PAYLOAD_TOO_LARGE),
            Ok(Err(_)) => refusal(StatusCode::BAD_REQUEST),
            Ok(Ok(body)) => self.answer(Request::from_parts(head, Full::new(body.to_bytes()))).await,
        }
    }

    async fn answer(&self, mut request: Request<Full<Bytes>>) -> Answer {
        let accepts = Accepts::widen(&mut request);
        let session = sessions::of(request.headers());
        if session.is_none() && self.sessions.are_full().await {
            return refusal(StatusCode::SERVICE_UNAVAILABLE);
        }
        // A session with a running call is not idle.
        let busy = match session {
            Some(session) => self.sessions.answering(session).await,
            None => None,
        };
        let answer = accepts.narrow(self.service.handle(request).await).await;
        let busy = match (busy, sessions::of(answer.headers())) {
            (None, Some(session)) => self.sessions.answering(session).await,
            (busy, _) => busy,
        };
        answer.map(|body| {
            let counted = body.map_frame(move |frame| {
                let _ = &busy;
                frame
            });
            counted.boxed()
        })
    }
}

fn refusal(status: StatusCode) -> Answer {
    let mut refused = Response::new(Full::default().boxed());
    *refused.status_mut() = status;
    refused
}

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        time::Instant,
    };

    use super::*;

    const HELLO: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;

    async fn serving(connections: usize, sessions: usize) -> HttpServer {
        let server = Server::builder("test").build().expect("builds");
        server.serve_at(([127, 0, 0, 1], 0).into(), connections, sessions).await.expect("serves")
    }

    /// Returns the response to these bytes, until the server closes the connection.
    async fn sent(server: &HttpServer, bytes: &[u8]) -> String {
        let mut stream = TcpStream::connect(server.address()).await.expect("connects");
        stream.write_all(bytes).await.expect("sent");
        let mut answer = Vec::new();
        // A server that stops reading may reset the connection.
        let _ = stream.read_to_end(&mut answer).await;
        String::from_utf8_lossy(&answer).into_owned()
    }

    fn post(body: &str, length: usize) -> String {
        format!(
            "POST /mcp HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\n\
             accept: application/json, text/event-stream\r\ncontent-length: {length}\r\n\r\n{body}"
        )
    }

    #[tokio::test(start_paused = true)]
    async fn a_head_and_a_body_that_never_end_are_given_up() {
        let server = serving(10, 10).await;
        let start = Instant::now();
        let answer = sent(&server, b"POST /mcp HTTP/1.1\r\nhost: loc").await;
        assert!(!answer.contains("200 OK") && start.elapsed() >= HEAD && start.elapsed() < HEAD * 4, "{answer}");
        let start = Instant::now();
        let answer = sent(&server, post("{", 10).as_bytes()).await;
        assert!(
            answer.starts_with("HTTP/1.1 408") && start.elapsed() >= BODY && start.elapsed() < BODY * 4,
            "{answer}"
        );
    }

    #[tokio::test]
    async fn a_body_that_is_too_large_is_refused_before_it_is_whole() {
        let server = serving(10, 10).await;
        // Announces more bytes, which never arrive.
        let body = " ".repeat(LARGEST + 1);
        let answer = sent(&server, post(&body, LARGEST * 2).as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 413") || answer.is_empty(), "{answer}");
    }

    #[tokio::test]
    async fn a_client_is_answered_whatever_of_json_and_events_it_accepts() {
        let server = serving(10, 10).await;
        for (accept, kind) in [
            ("*/*", "text/event-stream"),
            ("text/event-stream", "text/event-stream"),
            ("application/json", "application/json"),
        ] {
            let hello = post(HELLO, HELLO.len()).replace("application/json, text/event-stream", accept);
            let answer = sent(&server, hello.as_bytes()).await;
            assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("serverInfo"), "{accept}: {answer}");
            assert!(answer.contains(&format!("content-type: {kind}")), "{accept}: {answer}");
        }
        let hello = post(HELLO, HELLO.len()).replace("application/json, text/event-stream", "text/html");
        assert!(sent(&server, hello.as_bytes()).await.starts_with("HTTP/1.1 406"));
    }

    #[tokio::test]
    async fn a_session_more_than_there_may_be_is_refused() {
        let server = serving(10, 2).await;
        for _ in 0..2 {
            let answer = sent(&server, post(HELLO, HELLO.len()).as_bytes()).await;
            assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        }
        let answer = sent(&server, post(HELLO, HELLO.len()).as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
    }

    #[tokio::test]
    async fn a_connection_more_than_there_may_be_waits_until_another_one_ends() {
        let (server, hello) = (serving(1, 10).await, post(HELLO, HELLO.len()));
        let held = TcpStream::connect(server.address()).await.expect("connects");
        // The first client holds the connection slot once it is accepted; the second one gets its
        // response only when the slot is released.
        let second = tokio::time::timeout(Duration::from_millis(300), sent(&server, hello.as_bytes()));
        assert!(second.await.is_err(), "there is one place");
        drop(held);
        let third = tokio::time::timeout(Duration::from_secs(20), sent(&server, hello.as_bytes()));
        let answer = third.await.expect("has the place");
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
}
