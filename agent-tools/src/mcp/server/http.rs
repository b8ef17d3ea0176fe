//! Serving over streamable HTTP.

use std::{convert::Infallible, net::SocketAddr, sync::Arc};

use agent_core::{Error, ErrorKind, Result};
use http::{HeaderValue, Request, Response, StatusCode, header::AUTHORIZATION};
use http_body_util::{BodyExt, Full, combinators::BoxBody};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::rt::TokioIo;
use rmcp::transport::{
    StreamableHttpServerConfig, StreamableHttpService, streamable_http_server::session::local::LocalSessionManager,
};
use sha2::{Digest, Sha256};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use super::{Server, handler::Handler};

type Service = StreamableHttpService<Handler, LocalSessionManager>;

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
    /// # Errors
    /// [`ErrorKind::Transport`] if the address cannot be had.
    pub async fn serve_http(&self, address: SocketAddr) -> Result<HttpServer> {
        let failed = |e| Error::new(ErrorKind::Transport, format!("nothing can be served at {address}")).with_source(e);
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let (address, stop) = (listener.local_addr().map_err(failed)?, CancellationToken::new());
        // A page of another site that a browser shows is nobody's client.
        let mut config = StreamableHttpServerConfig::default().enforce_origin_validation();
        config.cancellation_token = stop.child_token();
        config.allowed_hosts.extend(self.0.hosts.iter().cloned());
        let handler = self.handler();
        let service = Service::new(move || Ok(handler.clone()), Arc::default(), config);
        tokio::spawn(stop.clone().run_until_cancelled_owned(accept(listener, service, self.clone(), stop.clone())));
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

async fn accept(listener: TcpListener, service: Service, server: Server, stop: CancellationToken) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let serving = connection(stream, service.clone(), server.clone());
                tokio::spawn(stop.clone().run_until_cancelled_owned(serving));
            }
            Err(error) => {
                tracing::warn!(%error, "a connection could not be taken");
                // Out of files, most likely: some are given back soon.
                tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            }
        }
    }
}

async fn connection(stream: TcpStream, service: Service, server: Server) {
    let answer = service_fn(|request: Request<Incoming>| {
        let (service, server) = (service.clone(), server.clone());
        async move {
            Ok::<Response<BoxBody<_, Infallible>>, Infallible>(if server.admits(&request) {
                service.handle(request).await
            } else {
                let mut refused = Response::new(Full::default().boxed());
                *refused.status_mut() = StatusCode::UNAUTHORIZED;
                refused
            })
        }
    });
    let served = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), answer).await;
    if let Err(error) = served {
        tracing::debug!(%error, "a client of an MCP server went away");
    }
}
