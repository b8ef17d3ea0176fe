//! Reaching servers.

use std::{io, sync::Arc, time::Duration};

use agent_core::{Error, Result};
use http::uri::Scheme;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{client::legacy::connect::HttpConnector, rt::TokioIo};
use tokio::sync::OnceCell;
use tower::{BoxError, ServiceExt};

use super::{broken, connection::Connection, origin::Origin};

/// Longest time to reach the server.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);

/// Opens connections, with TLS or without.
pub(super) struct Connector {
    plain: HttpConnector,
    tls: OnceCell<HttpsConnector<HttpConnector>>,
}

impl Connector {
    pub(super) fn new() -> Self {
        Self { plain: connector(), tls: OnceCell::new() }
    }

    /// True if certificates were read.
    pub(super) fn is_ready_for_tls(&self) -> bool {
        self.tls.initialized()
    }

    /// A new connection to `origin`.
    pub(super) async fn connect(&self, origin: &Origin) -> Result<Connection> {
        let unreachable = |e: BoxError| broken("the provider could not be reached").with_source(e);
        let uri = origin.uri().clone();
        Ok(if uri.scheme() == Some(&Scheme::HTTPS) {
            let stream = self.tls().await?.oneshot(uri).await.map_err(unreachable)?;
            Connection::new(TokioIo::new(stream))
        } else {
            let stream = self.plain.clone().oneshot(uri).await.map_err(|e| unreachable(e.into()))?;
            Connection::new(stream.into_inner())
        })
    }

    async fn tls(&self) -> Result<HttpsConnector<HttpConnector>> {
        let failed = |e: io::Error| Error::config("TLS could not be set up").with_source(e);
        // Reading the certificates takes milliseconds of disk time.
        let connect = || async { tokio::task::spawn_blocking(tls_connector).await.map_err(io::Error::other)? };
        self.tls.get_or_try_init(connect).await.cloned().map_err(failed)
    }
}

fn connector() -> HttpConnector {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    connector.set_connect_timeout(Some(CONNECT_TIMEOUT));
    connector
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tls_is_set_up_without_anything_set_for_the_process() {
        tls_connector().expect("certificates and a provider");
    }
}
