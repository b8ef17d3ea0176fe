//! [`Caller`]: sends non-streamed requests.

use agent_core::{Error, Result};
use bytes::Bytes;
use http::{HeaderMap, Request};

use super::{HttpSettings, incoming::Form, redacted, settings::Http};
use crate::{Auth, ProviderError, error::not_the_protocol, redact::Redactor};

/// Sends non-streamed requests as models do: with the key, within the limits of time and size, and
/// without secrets in errors. Used by embedders and rerankers.
pub(crate) struct Caller {
    http: Http,
    provider: String,
}

impl Caller {
    /// # Errors
    /// [`Config`](agent_core::ErrorKind::Config) for an invalid header, or if there is no
    /// transport.
    pub(crate) fn new(provider: String, auth: Auth, settings: HttpSettings) -> Result<Self> {
        Ok(Self { http: settings.ready(auth)?, provider })
    }

    /// Sends `request` and reads its answer; sends it once more if it is refused and there is
    /// another key.
    ///
    /// # Errors
    /// The transport's error, the provider's error, or the error of `read`.
    pub(crate) async fn call<T>(
        &self,
        request: Request<Bytes>,
        read: impl Fn(&HeaderMap, &[u8]) -> Result<T> + Send + Sync,
    ) -> Result<T> {
        let mut keys = Redactor::default();
        let answered = self.exchange(request, &read, &mut keys).await;
        answered.map_err(|e| redacted(redacted(e, &self.http.redactor), &keys))
    }

    async fn exchange<T>(
        &self,
        request: Request<Bytes>,
        read: &(impl Fn(&HeaderMap, &[u8]) -> Result<T> + Send + Sync),
        keys: &mut Redactor,
    ) -> Result<T> {
        let (headers, body) = match self.send(request.clone(), keys).await? {
            Ok(answer) => answer,
            Err(refused) if self.http.has_another_key(&refused).await => self.send(request, keys).await??,
            Err(refused) => return Err(refused),
        };
        read(&headers, &body)
    }

    /// Sends the request; the inner error is the provider's refusal.
    async fn send(&self, request: Request<Bytes>, keys: &mut Redactor) -> Result<Result<(HeaderMap, Bytes), Error>> {
        let (head, mut body) = self.http.send(request, &self.provider, keys).await?;
        if !head.status.is_success() {
            let text = body.start().await;
            return Ok(Err(ProviderError::from_response(head.status, &head.headers, &text).into_error(&self.provider)));
        }
        if !Form::of(&head.headers, false).comes_whole(&self.provider)? {
            return Err(not_the_protocol(&self.provider, "the answer is a stream", ""));
        }
        Ok(Ok((head.headers, body.whole().await?)))
    }
}
