//! HTTP client for Restate's ingress and admin interfaces.

use std::{sync::Arc, time::Duration};

use agent_core::{Error, ErrorKind, Result};
use reqwest::{Client, Method, RequestBuilder, StatusCode, Url};
use rustls::{ClientConfig, RootCertStore, crypto::ring};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Timeout of calls to short handlers. Restate itself holds a call until a process serves the
/// agents.
const PATIENCE: Duration = Duration::from_secs(15);

/// Address of Restate's ingress or admin interface. Holds a secret, and therefore has no `Debug`.
#[derive(Clone)]
pub(crate) struct Address {
    client: Client,
    base: Url,
    token: Option<Arc<str>>,
}

impl Address {
    pub(crate) fn new(client: &Client, base: &str, token: Option<Arc<str>>) -> Result<Self> {
        let base = Url::parse(base).ok().filter(|url| !url.cannot_be_a_base());
        let base = base.ok_or_else(|| Error::config("invalid Restate URL: expected one like http://127.0.0.1:8080"))?;
        Ok(Self { client: client.clone(), base, token })
    }

    /// Builds a request to the path of these segments, which may hold any text.
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

    /// Calls a short handler and returns its result.
    pub(crate) async fn call<T: DeserializeOwned>(&self, path: &[&str], input: &impl serde::Serialize) -> Result<T> {
        json(&answer(self.request(Method::POST, path).timeout(PATIENCE).json(input)).await?)
    }
}

/// Creates an HTTP client that trusts the machine's root certificates.
pub(crate) fn client() -> Result<Client> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map(|builder| builder.with_root_certificates(roots).with_no_client_auth());
    let config = config.map_err(|e| Error::config("TLS cannot be set up").with_source(e))?;
    let client = Client::builder().tls_backend_preconfigured(config).connect_timeout(Duration::from_secs(10));
    client.tcp_nodelay(true).build().map_err(|e| Error::config("the HTTP client cannot be created").with_source(e))
}

/// Header that distinguishes errors of the ingress from errors of an invocation, which chooses its
/// own status.
const SOURCE: &str = "x-restate-error-source";

/// Response of Restate, or of a proxy before it.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) status: StatusCode,
    source: Option<String>,
    body: String,
}

/// Sends a request and returns the response, whatever its status.
pub(crate) async fn said(request: RequestBuilder) -> Result<Said> {
    let failed = |e: reqwest::Error| {
        // The URL contains the session's name, which must not appear in errors.
        let e = e.without_url();
        let message = match e.is_timeout() && !e.is_connect() {
            true => {
                "Restate did not answer in time: check that a process that serves the agents runs and is registered"
            }
            false => "Restate cannot be reached: check its address and that it is running",
        };
        Error::new(ErrorKind::Store, message).with_source(e)
    };
    let response = request.send().await.map_err(failed)?;
    let status = response.status();
    let source = response.headers().get(SOURCE).and_then(|source| source.to_str().ok()).map(str::to_owned);
    Ok(Said { status, source, body: response.text().await.map_err(failed)? })
}

/// Sends a request and returns the response if its status is a success.
pub(crate) async fn answer(request: RequestBuilder) -> Result<Said> {
    let said = said(request).await?;
    match said.status.is_success() {
        true => Ok(said),
        false => Err(said.refusal()),
    }
}

impl Said {
    /// Returns the message of an error that Restate reports; none if a proxy answered.
    fn message(&self) -> Option<String> {
        let told: Value = serde_json::from_str(&self.body).ok()?;
        told["message"].as_str().map(str::to_owned)
    }

    /// True if the response is the result of an invocation.
    pub(crate) fn is_of_invocation(&self) -> bool {
        match self.source.as_deref() {
            Some(source) => source == "invocation",
            // Older servers do not send the header: these statuses come from the ingress or a
            // proxy.
            None => {
                let is_other = matches!(self.status.as_u16(), 401 | 403 | 404 | 408 | 429 | 470 | 502..=504);
                !is_other && self.message().is_some()
            }
        }
    }

    /// True if the ingress knows no such invocation.
    pub(crate) fn is_unknown_invocation(&self) -> bool {
        let is_of_ingress = self.status == StatusCode::NOT_FOUND && !self.is_of_invocation();
        is_of_ingress && !self.is_unknown_service() && self.message().is_some()
    }

    /// True if the ingress does not know the service, or not yet: it loads the registrations on
    /// startup.
    fn is_unknown_service(&self) -> bool {
        let is_of_ingress = self.status == StatusCode::NOT_FOUND && !self.is_of_invocation();
        is_of_ingress && self.message().is_some_and(|message| message.contains("register the service"))
    }

    /// Converts an unsuccessful response into an error.
    pub(crate) fn refusal(&self) -> Error {
        if self.is_unknown_service() {
            return Error::new(
                ErrorKind::Store,
                "Restate does not know the service: register an endpoint of it, or try again if the server has just begun",
            );
        }
        let kind = match self.status.as_u16() {
            400 | 401 | 403 | 404 | 422 => ErrorKind::Config,
            409 => ErrorKind::Stale,
            429 => ErrorKind::RateLimited,
            _ => ErrorKind::Store,
        };
        let told = self.message().unwrap_or_else(|| self.body.clone());
        let short: String = told.chars().take(500).collect();
        Error::new(kind, format!("Restate rejected the request ({}): {short}", self.status.as_u16()))
    }
}

/// Decodes the JSON body of a response.
pub(crate) fn json<T: DeserializeOwned>(said: &Said) -> Result<T> {
    let body = if said.body.is_empty() { "null" } else { &said.body };
    serde_json::from_str(body)
        .map_err(|e| Error::new(ErrorKind::Store, "cannot decode Restate's response").with_source(e))
}
