//! What an issuer publishes: its discovery document, and its keys.

use std::{sync::Arc, time::Duration};

use agent::{Error, Result};
use jsonwebtoken::jwk::{Jwk, PublicKeyUse};
use reqwest::{Client, Url};
use rustls::{ClientConfig, RootCertStore, crypto::ring};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;

/// Where the document is, below the issuer.
const DISCOVERY: &str = ".well-known/openid-configuration";
/// How long a request may take.
const LONGEST: Duration = Duration::from_secs(10);
/// Bytes of a document at most.
const LARGEST: usize = 1 << 20;

/// The documents of an issuer.
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

/// Keys of kinds that this release does not know may be among them.
#[derive(Deserialize)]
struct Keys {
    keys: Vec<Value>,
}

impl Documents {
    /// Those of this issuer. Nothing is read yet.
    pub(super) fn of(issuer: &str) -> Result<Self> {
        let discovery = address(&format!("{}/{DISCOVERY}", issuer.trim_end_matches('/')))?;
        let client = Client::builder()
            .tls_backend_preconfigured(tls()?)
            .redirect(reqwest::redirect::Policy::none())
            .timeout(LONGEST)
            .build()
            .map_err(|e| Error::config("an HTTP client cannot be made").with_source(e))?;
        Ok(Self { issuer: issuer.to_owned(), discovery, client })
    }

    /// The keys by which tokens are signed, where the discovery document says.
    pub(super) async fn keys(&self) -> Result<Vec<Jwk>> {
        let said: Discovery = self.read(self.discovery.clone()).await?;
        if said.issuer != self.issuer {
            let message = format!("the issuer '{}' calls itself '{}': name it so", self.issuer, said.issuer);
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

/// An address that is reached by HTTPS, or is on this machine.
fn address(text: &str) -> Result<Url> {
    let url = Url::parse(text).map_err(|e| Error::config(format!("'{text}' is no address: {e}")))?;
    let is_here = matches!(url.host_str(), Some("127.0.0.1" | "[::1]" | "localhost"));
    if url.scheme() == "https" || (url.scheme() == "http" && is_here) {
        return Ok(url);
    }
    Err(Error::config(format!("'{text}' must be reached by HTTPS")))
}

/// TLS with ring, and the roots that the machine trusts.
fn tls() -> Result<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let config =
        ClientConfig::builder_with_provider(Arc::new(ring::default_provider())).with_safe_default_protocol_versions();
    let config = config.map_err(|e| Error::config("TLS cannot be set up").with_source(e))?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}
