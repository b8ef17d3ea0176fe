//! Documents of an OpenID Connect issuer: discovery document and keys.

use std::{sync::Arc, time::Duration};

use agent::{Error, Result};
use jsonwebtoken::jwk::{Jwk, PublicKeyUse};
use reqwest::{Client, Url};
use rustls::{ClientConfig, RootCertStore, crypto::ring};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;

/// Path of the discovery document, relative to the issuer.
const DISCOVERY: &str = ".well-known/openid-configuration";
/// Timeout of a request.
const LONGEST: Duration = Duration::from_secs(10);
/// Maximum size of a document in bytes.
const LARGEST: usize = 1 << 20;

/// Client for the documents of an issuer.
#[derive(Debug)]
pub(super) struct Documents {
    issuer: String,
    discovery: Url,
    client: Client,
}

#[derive(Deserialize)]
struct Discovery {
    issuer: String,
    jwks_uri: String,
}

/// Key set, which may contain key types that this release does not support.
#[derive(Deserialize)]
struct Keys {
    keys: Vec<Value>,
}

impl Documents {
    /// Creates a client for this issuer. Does not connect yet.
    pub(super) fn of(issuer: &str) -> Result<Self> {
        let discovery = address(&format!("{}/{DISCOVERY}", issuer.trim_end_matches('/')))?;
        let client = Client::builder()
            .tls_backend_preconfigured(tls()?)
            .redirect(reqwest::redirect::Policy::none())
            .timeout(LONGEST)
            .build()
            .map_err(|e| Error::config("the HTTP client cannot be created").with_source(e))?;
        Ok(Self { issuer: issuer.to_owned(), discovery, client })
    }

    /// Fetches the signing keys from the location in the discovery document.
    pub(super) async fn keys(&self) -> Result<Vec<Jwk>> {
        let said: Discovery = self.read(self.discovery.clone()).await?;
        if said.issuer != self.issuer {
            let message =
                format!("the issuer '{}' identifies itself as '{}': configure that name", self.issuer, said.issuer);
            return Err(Error::config(message));
        }
        let Keys { keys } = self.read(address(&said.jwks_uri)?).await?;
        let keys = keys.into_iter().filter_map(|key| serde_json::from_value::<Jwk>(key).ok());
        Ok(keys.filter(|key| key.common.public_key_use != Some(PublicKeyUse::Encryption)).collect())
    }

    async fn read<T: DeserializeOwned>(&self, address: Url) -> Result<T> {
        let failed = |what: &str| Error::config(format!("{address}: {what}"));
        let answer = self.client.get(address.clone()).send().await.map_err(|e| failed(&e.without_url().to_string()))?;
        let mut answer = answer.error_for_status().map_err(|e| failed(&e.without_url().to_string()))?;
        let mut text = Vec::new();
        while let Some(piece) = answer.chunk().await.map_err(|e| failed(&e.without_url().to_string()))? {
            text.extend_from_slice(&piece);
            if text.len() > LARGEST {
                return Err(failed("the document is too large"));
            }
        }
        serde_json::from_slice(&text).map_err(|e| failed(&e.to_string()))
    }
}

/// Parses a URL, which must use HTTPS or a local host.
fn address(text: &str) -> Result<Url> {
    let url = Url::parse(text).map_err(|e| Error::config(format!("invalid URL '{text}': {e}")))?;
    let is_here = matches!(url.host_str(), Some("127.0.0.1" | "[::1]" | "localhost"));
    if url.scheme() == "https" || (url.scheme() == "http" && is_here) {
        return Ok(url);
    }
    Err(Error::config(format!("'{text}' must use HTTPS")))
}

/// TLS with ring and the machine's root certificates.
fn tls() -> Result<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let config =
        ClientConfig::builder_with_provider(Arc::new(ring::default_provider())).with_safe_default_protocol_versions();
    let config = config.map_err(|e| Error::config("TLS cannot be set up").with_source(e))?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}
