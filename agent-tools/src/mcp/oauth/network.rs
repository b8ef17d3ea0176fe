//! HTTP client for authorization servers, whose addresses are untrusted.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use agent_core::{Error, Result};
use futures::StreamExt;
use http::{Request, Response};
use reqwest::Url;
use rmcp::transport::auth::{
    AuthorizationMetadata, OAuthHttpClient, OAuthHttpClientError, OAuthHttpClientFuture, OAuthHttpRequest,
};

use crate::{
    http::{AddressPolicy, System},
    mcp::http::builder,
};

/// Timeout of a request.
const LONGEST: Duration = Duration::from_secs(30);

/// Maximum size of a response in bytes.
const LARGEST: usize = 1024 * 1024;

/// Well-known path of the metadata that names a server's authorization server.
const NAMES: &str = "/.well-known/oauth-protected-resource";

/// Well-known path of an authorization server's metadata.
const METADATA: &str = "/.well-known/oauth-authorization-server";

/// HTTP client for authorization servers.
pub(super) struct Network {
    /// Hosts that the application named: the server's own, and allowed ones.
    hosts: Vec<String>,
    /// True once the server has named its authorization server.
    named: AtomicBool,
}

impl Network {
    pub(super) fn new(hosts: Vec<String>) -> Self {
        Self { hosts, named: AtomicBool::new(false) }
    }

    /// Returns true once the server has named its authorization server.
    pub(super) fn has_named_a_server(&self) -> bool {
        self.named.load(Ordering::Acquire)
    }

    /// Fetches authorization server metadata from the root of a server's origin.
    pub(super) async fn metadata_at_root_of(&self, server: &str) -> Option<AuthorizationMetadata> {
        let root = Url::parse(server).ok()?.join(METADATA).ok()?;
        let answer = self.exchange(Request::get(root.as_str()).body(Vec::new()).ok()?).await.ok()?;
        serde_json::from_slice(answer.body()).ok().filter(|_| answer.status().is_success())
    }

    /// Returns a client that connects to the URL's host, if its address is allowed.
    async fn client(&self, url: &Url) -> Result<reqwest::Client> {
        let host = url.host_str().unwrap_or_default();
        let is_named = self.hosts.iter().any(|named| named.eq_ignore_ascii_case(host));
        if url.scheme() != "https" && !is_named {
            return Err(Error::tool(format!("the authorization server at '{host}' is not reached by HTTPS")));
        }
        let reach = if is_named { AddressPolicy::anywhere() } else { AddressPolicy::public(Arc::new(System)) };
        let addresses = reach.addresses(url).await?;
        let builder = builder()?.resolve_to_addrs(host, &addresses);
        // A proxy would resolve the name again: the addresses that were checked are those connected to.
        let builder = if is_named { builder } else { builder.no_proxy() };
        let client = builder.timeout(LONGEST).build();
        client.map_err(|e| Error::config("an HTTP client cannot be made").with_source(e))
    }

    pub(super) async fn exchange(&self, request: Request<Vec<u8>>) -> Result<Response<Vec<u8>>, OAuthHttpClientError> {
        let asks_for_names = request.uri().path().contains(NAMES);
        let client = self.client(&Url::parse(&request.uri().to_string())?).await?;
        // An address may hold a secret.
        let answer = client.execute(request.try_into()?).await.map_err(reqwest::Error::without_url)?;
        if asks_for_names && answer.status().is_success() {
            self.named.store(true, Ordering::Release);
        }
        let mut response = Response::builder().status(answer.status());
        for (name, value) in answer.headers() {
            response = response.header(name, value);
        }
        let (mut body, mut pieces) = (Vec::new(), answer.bytes_stream());
        while let Some(piece) = pieces.next().await {
            body.extend_from_slice(&piece.map_err(reqwest::Error::without_url)?);
            if body.len() > LARGEST {
                return Err("the answer of the authorization server is too long".into());
            }
        }
        Ok(response.body(body)?)
    }
}

impl OAuthHttpClient for Network {
    fn execute(&self, request: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        Box::pin(self.exchange(request.request))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_host_that_the_server_named_must_be_public_and_reached_by_https() {
        let network = Network::new(vec!["127.0.0.1".into()]);
        let reaches = async |url: &str| network.client(&Url::parse(url).expect("a URL")).await.is_ok();
        assert!(reaches("http://127.0.0.1:9/token").await);
        assert!(reaches("https://93.184.215.14/token").await);
        for url in [
            "http://93.184.215.14/token",
            "https://10.0.0.1/",
            "https://169.254.169.254/",
            "https://[::1]/",
            "https://metadata/",
        ] {
            assert!(!reaches(url).await, "{url}");
        }
    }
}
