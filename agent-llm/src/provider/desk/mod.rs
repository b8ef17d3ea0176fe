//! Client for requests other than completions (files, batches), with a model's connections and key.

mod lines;

use agent_core::{Error, ErrorKind, ModelResponse, Result, Retry};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri, header};
use serde_json::Value;

pub(crate) use self::lines::Lines;
use super::way::Way;
use crate::{
    Provider, RetryLayer, Wire,
    model::{HttpModel, Incoming},
    models::Pricing,
    wire::endpoint::endpoint,
};

/// Client for requests other than completions.
pub(crate) struct Desk {
    pub(crate) model: HttpModel,
    pub(crate) provider: Provider,
    pub(crate) wire: Wire,
    pricing: Pricing,
    retries: RetryLayer,
}

impl Desk {
    pub(crate) fn new(model: HttpModel, provider: Provider, wire: Wire, retries: u32) -> Self {
        let pricing = model.batch_pricing();
        Self { model, provider, wire, pricing, retries: RetryLayer::of_model(retries) }
    }

    /// Returns the base URL of the API, without the version if the wire's path contains it.
    pub(crate) fn base_url(&self) -> &str {
        let base = self.wire.base_url(&self.provider).unwrap_or_default().trim_end_matches('/');
        if self.wire == Wire::Messages { base.strip_suffix("/v1").unwrap_or(base) } else { base }
    }

    /// Returns the URI of `path` at the provider.
    pub(crate) fn uri(&self, path: &str) -> Result<Uri> {
        endpoint(self.base_url(), path)
    }

    /// Parses a URL received from the provider, and checks that it is at the provider: the key is
    /// sent to no other host.
    pub(crate) fn own(&self, address: &str) -> Result<Uri> {
        let foreign = || protocol(&self.provider.name, "it named an address that is not its own");
        let uri: Uri = address.parse().map_err(|_| foreign())?;
        let base = self.uri("/")?;
        let is_own = uri.authority() == base.authority() && uri.scheme() == base.scheme();
        if is_own { Ok(uri) } else { Err(foreign()) }
    }

    /// Sends an idempotent request, with retries of temporary failures. The response is limited to
    /// the model's `max_answer`.
    pub(crate) async fn get(&self, method: Method, uri: Uri, headers: &HeaderMap) -> Result<Bytes> {
        let ask = || async { self.open(method.clone(), &uri, headers, Bytes::new()).await?.1.whole().await };
        self.retries.again(ask).await
    }

    /// As [`get`](Self::get), without a size limit.
    pub(crate) async fn download(&self, uri: Uri, headers: &HeaderMap) -> Result<Bytes> {
        let ask = || async { self.open(Method::GET, &uri, headers, Bytes::new()).await?.1.unbounded().all().await };
        self.retries.again(ask).await
    }

    /// As [`get`](Self::get), for JSON.
    pub(crate) async fn get_json(&self, uri: Uri, headers: &HeaderMap) -> Result<Value> {
        self.json(&self.get(Method::GET, uri, headers).await?)
    }

    /// As [`get`](Self::get), for a stream of lines.
    pub(crate) async fn get_lines(&self, uri: Uri, headers: &HeaderMap) -> Result<Lines> {
        let ask = || async { Ok(Lines::new(self.open(Method::GET, &uri, headers, Bytes::new()).await?.1)) };
        self.retries.again(ask).await
    }

    /// Sends a request that is not idempotent, without retries.
    pub(crate) async fn post(&self, uri: Uri, headers: &HeaderMap, body: Bytes) -> Result<(HeaderMap, Bytes)> {
        let (head, mut body) = self.open(Method::POST, &uri, headers, body).await?;
        Ok((head, body.whole().await?))
    }

    /// As [`post`](Self::post), with JSON in both directions.
    pub(crate) async fn post_json(&self, uri: Uri, headers: &HeaderMap, body: impl Into<Bytes>) -> Result<Value> {
        let mut headers = headers.clone();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let (_, said) = self.post(uri, &headers, body.into()).await?;
        self.json(&said)
    }

    async fn open(&self, method: Method, uri: &Uri, headers: &HeaderMap, body: Bytes) -> Result<(HeaderMap, Incoming)> {
        let mut request = Request::new(body);
        (*request.method_mut(), *request.uri_mut(), *request.headers_mut()) = (method, uri.clone(), headers.clone());
        self.model.open(request).await
    }

    /// Parses a response as JSON.
    ///
    /// # Errors
    /// [`ErrorKind::Protocol`] if it is not JSON.
    pub(crate) fn json(&self, body: &[u8]) -> Result<Value> {
        let no_json = |e| protocol(&self.provider.name, "its answer is no JSON").with_source(e);
        serde_json::from_slice(body).map_err(no_json)
    }

    /// Decodes the answer in `body`, with its cost in a batch.
    pub(crate) fn answer(&self, body: &[u8]) -> Result<ModelResponse> {
        let mut response = self.model.codec().decode(body)?;
        response.usage = self.pricing.price(response.usage, response.model.as_deref());
        Ok(response)
    }
}

/// Builds a header map.
pub(crate) fn headers<const N: usize>(of: [(&'static str, &str); N]) -> HeaderMap {
    let header = |(name, value)| Some((HeaderName::from_static(name), HeaderValue::try_from(value).ok()?));
    of.into_iter().filter(|(_, value): &(_, &str)| !value.is_empty()).filter_map(header).collect()
}

/// Returns a text field of a response.
///
/// # Errors
/// [`ErrorKind::Protocol`] if it does not exist.
pub(crate) fn text<'a>(provider: &str, said: &'a Value, pointer: &str) -> Result<&'a str> {
    let lacks = || protocol(provider, "its answer lacks a field").with_context("field", pointer);
    said.pointer(pointer).and_then(Value::as_str).ok_or_else(lacks)
}

pub(crate) fn protocol(provider: &str, what: &'static str) -> Error {
    Error::new(ErrorKind::Protocol, what).with_retry(Retry::Permanent).with_context("provider", provider)
}
