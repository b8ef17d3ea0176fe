//! Servers at a URL: streamable HTTP.

use std::sync::Arc;

use agent_core::{Error, Result};
use rmcp::transport::{StreamableHttpClientTransport, streamable_http_client::StreamableHttpClientTransportConfig};
use rustls::{ClientConfig, RootCertStore, crypto::ring};

use super::Http;

/// A connection over streamable HTTP. Nothing is sent yet.
pub(super) fn transport(server: &Http, limit: usize) -> Result<StreamableHttpClientTransport<reqwest::Client>> {
    let mut config = StreamableHttpClientTransportConfig::with_uri(server.url.as_str());
    config = config.max_sse_event_size(limit).max_json_response_size(limit);
    config = config.custom_headers(server.headers()?.into_iter().collect());
    Ok(StreamableHttpClientTransport::with_client(client()?, config))
}

/// An HTTP client with the roots of this machine. Redirects are not followed: headers with secrets are for one server.
pub(super) fn client() -> Result<reqwest::Client> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let tls =
        ClientConfig::builder_with_provider(Arc::new(ring::default_provider())).with_safe_default_protocol_versions();
    let tls = tls.map_err(|e| Error::config("TLS cannot be set up").with_source(e))?;
    let tls = tls.with_root_certificates(roots).with_no_client_auth();
    let client = reqwest::Client::builder().tls_backend_preconfigured(tls).redirect(reqwest::redirect::Policy::none());
    client.build().map_err(|e| Error::config("an HTTP client cannot be made").with_source(e))
}
