//! Serving over streamable HTTP.

use std::{convert::Infallible, net::SocketAddr, sync::Arc, time::Duration};

use agent_core::{Error, ErrorKind, Result};
use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode, header::AUTHORIZATION};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited, combinators::BoxBody};
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
    handler::Handler,
    sessions::{self, Sessions},
};

type Service = StreamableHttpService<Handler, LocalSessionManager>;

type Answer = Response<BoxBody<Bytes, Infallible>>;

/// The most connections at once.
const CONNECTIONS: usize = 1024;

/// The most bytes of a request.
const LARGEST: usize = 4 * 1024 * 1024;

/// How long the head of a request may take, and how long a connection is kept without one.
const HEAD: Duration = Duration::from_secs(30);

/// How long the body of a request may take.
const BODY: Duration = Duration::from_secs(60);

/// A [`Server`] at an address of this machine. It ends when this is dropped.
#[derive(Debug)]
pub struct HttpServer {
    address: SocketAddr,
    stop: CancellationToken,
}

impl Server {
    /// Serves over streamable HTTP at this address, such as `127.0.0.1:8000`, at every path. A port 0 is a free one. TLS is the
    /// work of a proxy before it.
    ///
    /// There are at most 1024 connections and 1024 sessions at once, and a request has at most 4 MiB. A session to which nobody
    /// listens is over after five minutes, and its client begins another one.
    ///
    /// # Errors
    /// [`ErrorKind::Transport`] if the address cannot be had.
    pub async fn serve_http(&self, address: SocketAddr) -> Result<HttpServer> {
        let failed = |e| Error::new(ErrorKind::Transport, format!("nothing can be served at {address}")).with_source(e);
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let (address, stop) = (listener.local_addr().map_err(failed)?, CancellationToken::new());
        // A page that a browser shows is nobody's client, unless it is of this machine or of a host that was named.
        let mut config = StreamableHttpServerConfig::default().enforce_origin_validation();
        config.cancellation_token = stop.child_token();
        config.allowed_hosts.extend(self.0.hosts.iter().cloned());
        let local = ["localhost", "127.0.0.1", "[::1]"].map(|host| format!("http://{host}:*"));
        let named = self
            .0
            .hosts
            .iter()
            .map(|host| host.split(':').next().unwrap_or(host))
            .map(|host| format!("https://{host}:*"));
        config.allowed_origins = local.into_iter().chain(named).collect();
        let handler = self.handler();
        let sessions = Sessions::new();
        let service = Service::new(move || Ok(handler.clone()), sessions.manager.clone(), config);
        tokio::spawn(stop.clone().run_until_cancelled_owned(sessions.clone().watch()));
        let accepting = accept(listener, service, sessions, self.clone(), stop.clone());
        tokio::spawn(stop.clone().run_until_cancelled_owned(accepting));
        Ok(HttpServer { address, stop })
    }

    /// True if the request may be answered.
    fn admits<B>(&self, request: &Request<B>) -> bool {
        let Some(bearer) = &self.0.bearer else { return true };
        let given = request.headers().get(AUTHORIZATION).map(HeaderValue::as_bytes).unwrap_or_default();
        // Digests are compared, so that the time that it takes tells nothing of the token.
        Sha256::digest(given) == Sha256::digest(format!("Bearer {}", bearer.expose()))
    }
}

impl HttpServer {
    /// Where it is.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

async fn accept(
    listener: TcpListener,
    service: Service,
    sessions: Arc<Sessions>,
    server: Server,
    stop: CancellationToken,
) {
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        // Whoever comes when all are taken waits in the system's own queue.
        let Ok(place) = room.clone().acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => {
                let serving = connection(stream, service.clone(), sessions.clone(), server.clone());
                tokio::spawn(stop.clone().run_until_cancelled_owned(async move {
                    serving.await;
                    drop(place);
                }));
            }
            Err(error) => {
                tracing::warn!(%error, "a connection could not be taken");
                // Out of files, most likely: some are given back soon.
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

async fn connection(stream: TcpStream, service: Service, sessions: Arc<Sessions>, server: Server) {
    let answer = service_fn(|request: Request<Incoming>| {
        let (service, sessions, server) = (service.clone(), sessions.clone(), server.clone());
        async move { Ok::<_, Infallible>(answer(request, &service, &sessions, &server).await) }
    });
    let mut http = hyper::server::conn::http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD);
    if let Err(error) = http.serve_connection(TokioIo::new(stream), answer).await {
        tracing::debug!(%error, "a client of an MCP server went away");
    }
}

async fn answer(request: Request<Incoming>, service: &Service, sessions: &Arc<Sessions>, server: &Server) -> Answer {
    if !server.admits(&request) {
        return refusal(StatusCode::UNAUTHORIZED);
    }
    let session = sessions::of(request.headers());
    if session.is_none() && sessions.are_full().await {
        return refusal(StatusCode::SERVICE_UNAVAILABLE);
    }
    let (head, body) = request.into_parts();
    let body = match tokio::time::timeout(BODY, Limited::new(body, LARGEST).collect()).await {
        Err(_) => return refusal(StatusCode::REQUEST_TIMEOUT),
        Ok(Err(error)) if error.is::<LengthLimitError>() => return refusal(StatusCode::PAYLOAD_TOO_LARGE),
        Ok(Err(_)) => return refusal(StatusCode::BAD_REQUEST),
        Ok(Ok(body)) => body.to_bytes(),
    };
    // A session that is silent while its call is answered is not over.
    let busy = match session {
        Some(session) => sessions.answering(session).await,
        None => None,
    };
    let answer = service.handle(Request::from_parts(head, Full::new(body))).await;
    let busy = match (busy, sessions::of(answer.headers())) {
        (None, Some(session)) => sessions.answering(session).await,
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

fn refusal(status: StatusCode) -> Answer {
    let mut refused = Response::new(Full::default().boxed());
    *refused.status_mut() = status;
    refused
}
