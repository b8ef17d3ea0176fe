//! The transport over HTTP/1.1: hyper and rustls.

use std::{error::Error as _, fmt, io, sync::Arc, time::Duration};

use agent_core::{Error, ErrorKind, Result, Retry, async_trait};
use bytes::Bytes;
use futures::{FutureExt, TryStreamExt};
use http::{Request, Response, uri::Scheme};
use http_body_util::{BodyExt, Full};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{self, Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use tokio::sync::OnceCell;

use super::{Body, Transport};

/// Longest time to reach the server.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);

/// HTTP/1.1, with TLS for `https` addresses. Keeps connections open for further requests; cheap to clone.
///
/// Redirects are not followed and proxies of the environment not used, so that a request and its key go where they were
/// sent and nowhere else. Root certificates are those of the operating system (without any, a built-in set), and are
/// read at the first `https` request. Use one transport per tokio runtime.
#[derive(Clone)]
pub struct HyperTransport(Arc<Inner>);

struct Inner {
    plain: Client<HttpConnector, Full<Bytes>>,
    tls: OnceCell<Client<HttpsConnector<HttpConnector>, Full<Bytes>>>,
}

impl HyperTransport {
    /// A transport without connections.
    pub fn new() -> Self {
        Self(Arc::new(Inner { plain: client(connector()), tls: OnceCell::new() }))
    }
}

impl Default for HyperTransport {
    fn default() -> Self {
        Self::new()
    }
}

fn connector() -> HttpConnector {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    connector.set_connect_timeout(Some(CONNECT_TIMEOUT));
    connector
}

fn client<C: legacy::connect::Connect + Clone>(connector: C) -> Client<C, Full<Bytes>> {
    Client::builder(TokioExecutor::new()).pool_timer(TokioTimer::new()).build(connector)
}

impl Inner {
    async fn tls(&self) -> Result<&Client<HttpsConnector<HttpConnector>, Full<Bytes>>> {
        let failed = |e: io::Error| Error::config("TLS could not be set up").with_source(e);
        // Reading the certificates takes milliseconds of disk time.
        let connect = || async { tokio::task::spawn_blocking(tls_connector).await.map_err(io::Error::other)? };
        self.tls.get_or_try_init(|| async { connect().await.map(client) }).await.map_err(failed)
    }
}

fn tls_connector() -> io::Result<HttpsConnector<HttpConnector>> {
    // The provider is named, since rustls refuses to choose where an application has brought in a second one.
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = HttpsConnectorBuilder::new();
    let builder = match builder.with_provider_and_native_roots(provider.clone()) {
        Ok(builder) => builder,
        Err(_) => HttpsConnectorBuilder::new().with_provider_and_webpki_roots(provider).map_err(io::Error::other)?,
    };
    let mut connector = connector();
    connector.enforce_http(false);
    Ok(builder.https_only().enable_http1().wrap_connector(connector))
}

#[async_trait]
impl Transport for HyperTransport {
    async fn send(&self, request: Request<Bytes>) -> Result<Response<Body>> {
        let request = request.map(Full::new);
        let sent = if request.uri().scheme() == Some(&Scheme::HTTPS) {
            let tls = match self.0.tls.get() {
                Some(tls) => tls,
                None => self.0.tls().boxed().await?, // once, and no other call has to have room for it
            };
            tls.request(request).await
        } else {
            self.0.plain.request(request).await
        };
        let response = sent.map_err(no_answer)?;
        Ok(response.map(|body| Body::new(body.into_data_stream().map_err(broken_body))))
    }
}

fn no_answer(e: legacy::Error) -> Error {
    let message = if e.is_connect() { "the provider could not be reached" } else { "the connection broke" };
    Error::new(ErrorKind::Transport, message).with_retry(Retry::Temporary(None)).with_source(e)
}

fn broken_body(e: hyper::Error) -> Error {
    let (kind, message) = if is_cut(&e) {
        (ErrorKind::Truncated, "the answer ended before it was complete")
    } else {
        (ErrorKind::Transport, "the connection broke in the middle of the answer")
    };
    Error::new(kind, message).with_retry(Retry::Temporary(None)).with_source(e)
}

/// True if the server closed the connection early, as opposed to a connection that failed.
fn is_cut(e: &hyper::Error) -> bool {
    let cause = e.source().and_then(|cause| cause.downcast_ref::<io::Error>());
    e.is_incomplete_message() || cause.is_some_and(|cause| cause.kind() == io::ErrorKind::UnexpectedEof)
}

impl fmt::Debug for HyperTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HyperTransport").field("tls", &self.0.tls.initialized()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tls_is_set_up_without_anything_set_for_the_process() {
        tls_connector().expect("certificates and a provider");
    }

    #[test]
    fn a_new_transport_has_read_no_certificates() {
        assert_eq!(format!("{:?}", HyperTransport::new()), "HyperTransport { tls: false }");
    }
}
