//! [`reqwest::Client`] as a transport.

use std::error::Error as StdError;

use agent_core::{Error, ErrorKind, Result, Retry, async_trait};
use bytes::Bytes;
use futures::TryStreamExt;
use http::{Request, Response};
use http_body_util::BodyDataStream;

use super::{Body, Transport};

/// For applications with an existing client and its settings. Note that it follows redirects with
/// the request's key unless `redirect::Policy::none()` is set.
#[async_trait]
impl Transport for reqwest::Client {
    async fn send(&self, request: Request<Bytes>) -> Result<Response<Body>> {
        let request = reqwest::Request::try_from(request)
            .map_err(|e| Error::config("reqwest does not take the request").with_source(e.without_url()))?;
        let answer = self.execute(request).await.map_err(|e| failed("the provider could not be reached", e))?;
        let broken = |e| failed("the connection broke in the middle of the answer", e);
        Ok(Response::from(answer).map(|body| Body::new(BodyDataStream::new(body).map_err(broken))))
    }
}

/// Builds a transport error. The URL may contain a key and is omitted.
fn failed(message: &'static str, e: reqwest::Error) -> Error {
    let causes = std::iter::successors(Some(&e as &(dyn StdError + 'static)), |&e| e.source());
    let is_cut = |e: &(dyn StdError + 'static)| e.downcast_ref().is_some_and(hyper::Error::is_incomplete_message);
    let part = match () {
        () if e.is_body() || e.is_decode() => "body",
        // The client does not distinguish between name resolution, proxy and TLS.
        () if e.is_connect() => "connection",
        () => "head",
    };
    let (kind, message) = match part == "body" && causes.into_iter().any(is_cut) {
        true => (ErrorKind::Truncated, "the answer ended before it was complete"),
        false => (ErrorKind::Transport, message),
    };
    let failed = Error::new(kind, message).with_retry(Retry::Temporary(None)).with_context("part", part);
    failed.with_source(e.without_url())
}
