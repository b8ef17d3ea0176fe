//! Calls of Restate's HTTP interfaces.

use std::{sync::Arc, time::Duration};

use agent_core::{Error, ErrorKind, Result};
use reqwest::{Client, Method, RequestBuilder, StatusCode, Url};
use rustls::{ClientConfig, RootCertStore, crypto::ring};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// How long an answer is waited for that comes in a moment. Restate itself waits until there is a process that serves the agents.
const PATIENCE: Duration = Duration::from_secs(15);

/// One of Restate's two addresses. It has a secret, and is never shown.
#[derive(Clone)]
pub(crate) struct Address {
    client: Client,
    base: Url,
    token: Option<Arc<str>>,
}

impl Address {
    pub(crate) fn new(client: &Client, base: &str, token: Option<Arc<str>>) -> Result<Self> {
        let base = Url::parse(base).ok().filter(|url| !url.cannot_be_a_base());
        let base =
            base.ok_or_else(|| Error::config("an address of Restate is no URL: it is like http://127.0.0.1:8080"))?;
        Ok(Self { client: client.clone(), base, token })
    }

    /// A request to the path of these segments, which may hold any text.
    pub(crate) fn request(&self, method: Method, path: &[&str]) -> RequestBuilder {
        let mut url = self.base.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(path);
        }
        let request = self.client.request(method, url);
        match &self.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    /// Calls a handler that works for a moment, and waits for what it gives.
    pub(crate) async fn call<T: DeserializeOwned>(&self, path: &[&str], input: &impl serde::Serialize) -> Result<T> {
        json(&answer(self.request(Method::POST, path).timeout(PATIENCE).json(input)).await?)
    }
}

/// A client that trusts what this machine trusts.
pub(crate) fn client() -> Result<Client> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map(|builder| builder.with_root_certificates(roots).with_no_client_auth());
    let config = config.map_err(|e| Error::config("TLS cannot be set up").with_source(e))?;
    let client = Client::builder().tls_backend_preconfigured(config).connect_timeout(Duration::from_secs(10));
    client.tcp_nodelay(true).build().map_err(|e| Error::config("a client for HTTP cannot be set up").with_source(e))
}

/// What Restate said.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) status: StatusCode,
    body: String,
}

/// The answer to a request, whatever it says.
pub(crate) async fn said(request: RequestBuilder) -> Result<Said> {
    let failed = |e: reqwest::Error| {
        // The URL has the session's name, which is nobody's business here.
        let e = e.without_url();
        let message = match e.is_timeout() && !e.is_connect() {
            true => "Restate has no answer yet: look whether a process that serves the agents runs, and is registered",
            false => "Restate cannot be reached: look at its address, and whether it runs",
        };
        Error::new(ErrorKind::Store, message).with_source(e)
    };
    let response = request.send().await.map_err(failed)?;
    let status = response.status();
    Ok(Said { status, body: response.text().await.map_err(failed)? })
}

/// The answer to a request that it took.
pub(crate) async fn answer(request: RequestBuilder) -> Result<Said> {
    let said = said(request).await?;
    match said.status.is_success() {
        true => Ok(said),
        false => Err(said.refusal()),
    }
}

impl Said {
    /// What a refusal means.
    pub(crate) fn refusal(&self) -> Error {
        let kind = match self.status.as_u16() {
            400 | 401 | 403 | 404 => ErrorKind::Config,
            409 => ErrorKind::Stale,
            429 => ErrorKind::RateLimited,
            _ => ErrorKind::Store,
        };
        let told: Option<Value> = serde_json::from_str(&self.body).ok();
        let told = told.as_ref().and_then(|told| told["message"].as_str()).unwrap_or(&self.body);
        let short: String = told.chars().take(500).collect();
        Error::new(kind, format!("Restate refused ({}): {short}", self.status.as_u16()))
    }
}

/// The JSON of an answer.
pub(crate) fn json<T: DeserializeOwned>(said: &Said) -> Result<T> {
    let body = if said.body.is_empty() { "null" } else { &said.body };
    serde_json::from_str(body)
        .map_err(|e| Error::new(ErrorKind::Store, "Restate's answer is not understood").with_source(e))
}
