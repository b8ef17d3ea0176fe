//! What a provider is asked beside answers, over the connections and with the key of a model: files, batches.

mod lines;

use agent_core::{Error, ErrorKind, ModelResponse, Result, Retry, model::Backoff};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri, header};
use serde_json::Value;
use tokio::time::sleep;

pub(crate) use self::lines::Lines;
use super::way::Way;
use crate::{Provider, Wire, model::HttpModel, models::Pricing, wire::endpoint::endpoint};

/// Asks a provider for things that are no answers of a model.
pub(crate) struct Desk {
    pub(crate) model: HttpModel,
    pub(crate) provider: Provider,
    pub(crate) wire: Wire,
    pricing: Pricing,
    retries: u32,
}

impl Desk {
    pub(crate) fn new(model: HttpModel, provider: Provider, wire: Wire, retries: u32) -> Self {
        let pricing = model.batch_pricing();
        Self { model, provider, wire, pricing, retries }
    }

    /// The address of the API, without the version where the wire's path has it.
    pub(crate) fn base_url(&self) -> &str {
        let base = self.wire.base_url(&self.provider).unwrap_or_default().trim_end_matches('/');
        if self.wire == Wire::Messages { base.strip_suffix("/v1").unwrap_or(base) } else { base }
    }

    /// The address of `path` at the provider.
    pub(crate) fn uri(&self, path: &str) -> Result<Uri> {
        endpoint(self.base_url(), path)
    }

    /// An address that the provider named, if it is at the provider: nobody else is shown the key.
    pub(crate) fn own(&self, address: &str) -> Result<Uri> {
        let foreign = || protocol(&self.provider.name, "it named an address that is not its own");
        let uri: Uri = address.parse().map_err(|_| foreign())?;
        let base = self.uri("/")?;
        let is_own = uri.authority() == base.authority() && uri.scheme() == base.scheme();
        if is_own { Ok(uri) } else { Err(foreign()) }
    }

    /// Asks for something as often as it fails for a moment: only for what may be asked twice. It is no longer than the model's
    /// `max_answer`.
    pub(crate) async fn get(&self, method: Method, uri: Uri, headers: &HeaderMap) -> Result<Bytes> {
        self.whole(method, uri, headers, self.model.max_answer()).await
    }

    /// As [`get`](Self::get), of any length.
    pub(crate) async fn download(&self, uri: Uri, headers: &HeaderMap) -> Result<Bytes> {
        self.whole(Method::GET, uri, headers, usize::MAX).await
    }

    async fn whole(&self, method: Method, uri: Uri, headers: &HeaderMap, most: usize) -> Result<Bytes> {
        self.again(|| async {
            let (_, mut lines) = self.open(request(method.clone(), uri.clone(), headers, Bytes::new())).await?;
            lines.whole(most).await
        })
        .await
    }

    /// As [`get`](Self::get), for JSON.
    pub(crate) async fn get_json(&self, uri: Uri, headers: &HeaderMap) -> Result<Value> {
        json(&self.provider.name, &self.get(Method::GET, uri, headers).await?)
    }

    /// As [`get`](Self::get), for lines that come one by one.
    pub(crate) async fn get_lines(&self, uri: Uri, headers: &HeaderMap) -> Result<Lines> {
        self.again(|| async {
            let (_, lines) = self.open(request(Method::GET, uri.clone(), headers, Bytes::new())).await?;
            Ok(lines)
        })
        .await
    }

    /// Sends something that makes something: once.
    pub(crate) async fn post(&self, uri: Uri, headers: &HeaderMap, body: Bytes) -> Result<(HeaderMap, Bytes)> {
        let (head, mut lines) = self.open(request(Method::POST, uri, headers, body)).await?;
        Ok((head, lines.whole(self.model.max_answer()).await?))
    }

    /// As [`post`](Self::post), of JSON for JSON.
    pub(crate) async fn post_json(&self, uri: Uri, headers: &HeaderMap, body: &Value) -> Result<Value> {
        let mut headers = headers.clone();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let (_, body) = self.post(uri, &headers, body.to_string().into()).await?;
        json(&self.provider.name, &body)
    }

    async fn again<T, F: Future<Output = Result<T>>>(&self, ask: impl Fn() -> F) -> Result<T> {
        let (backoff, mut failed) = (Backoff::new().retries(self.retries), 0);
        loop {
            let error = match ask().await {
                Ok(got) => return Ok(got),
                Err(error) => error,
            };
            let Retry::Temporary(asked) = error.retry() else { return Err(error) };
            failed += 1;
            match backoff.delay(failed, asked) {
                Some(delay) => sleep(delay).await,
                None => return Err(error),
            }
        }
    }

    async fn open(&self, request: Request<Bytes>) -> Result<(HeaderMap, Lines)> {
        let (head, body) = self.model.open(request).await?;
        Ok((head, Lines::new(body, self.model.longest_silence())))
    }

    /// The answer in `body`, with what it cost in a batch.
    pub(crate) fn answer(&self, body: &[u8]) -> Result<ModelResponse> {
        let mut response = self.model.codec().decode(body)?;
        response.usage = self.pricing.price(response.usage, response.model.as_deref());
        Ok(response)
    }
}

/// A request with these headers.
fn request(method: Method, uri: Uri, headers: &HeaderMap, body: Bytes) -> Request<Bytes> {
    let mut request = Request::new(body);
    (*request.method_mut(), *request.uri_mut(), *request.headers_mut()) = (method, uri, headers.clone());
    request
}

/// These headers.
pub(crate) fn headers<const N: usize>(of: [(&'static str, &str); N]) -> HeaderMap {
    let header = |(name, value)| Some((HeaderName::from_static(name), HeaderValue::try_from(value).ok()?));
    of.into_iter().filter(|(_, value): &(_, &str)| !value.is_empty()).filter_map(header).collect()
}

fn json(provider: &str, body: &[u8]) -> Result<Value> {
    serde_json::from_slice(body).map_err(|e| protocol(provider, "its answer is no JSON").with_source(e))
}

/// A text in what the provider said.
///
/// # Errors
/// [`ErrorKind::Protocol`] if it is not there.
pub(crate) fn text<'a>(provider: &str, said: &'a Value, pointer: &str) -> Result<&'a str> {
    let lacks = || protocol(provider, "its answer lacks a field").with_context("field", pointer);
    said.pointer(pointer).and_then(Value::as_str).ok_or_else(lacks)
}

pub(crate) fn protocol(provider: &str, what: &'static str) -> Error {
    Error::new(ErrorKind::Protocol, what).with_retry(Retry::Permanent).with_context("provider", provider)
}
