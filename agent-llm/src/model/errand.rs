//! Requests that ask for something else than an answer.

use std::time::Duration;

use agent_core::{ErrorKind, Result, Usage};
use bytes::Bytes;
use futures::StreamExt;
use http::{HeaderMap, Request};
use tokio::time::timeout;

use super::{HttpModel, answer::MOST_OF_AN_ERROR, redacted, silence::Silence};
use crate::{Body, Codec, redact::Redactor};

impl HttpModel {
    /// What the provider answers to a request of any kind, shown the key and with the headers of the model.
    ///
    /// # Errors
    /// The provider's, for a bad status.
    pub(crate) async fn open(&self, request: Request<Bytes>) -> Result<(HeaderMap, Body)> {
        let mut keys = Redactor::default();
        let mut opened = self.try_open(request.clone(), &mut keys).await;
        let is_refused = matches!(&opened, Err(e) if e.kind() == ErrorKind::Authentication);
        if let Some(credentials) = self.http.credentials.as_ref().filter(|_| is_refused)
            && credentials.refused().await
        {
            opened = self.try_open(request, &mut keys).await;
        }
        opened.map_err(|e| redacted(redacted(e, &self.http.redactor), &keys))
    }

    async fn try_open(&self, mut request: Request<Bytes>, keys: &mut Redactor) -> Result<(HeaderMap, Body)> {
        for (name, value) in &self.http.headers {
            request.headers_mut().insert(name.clone(), value.clone());
        }
        let mut silence = Silence::new(&self.http.waits, self.http.idle_timeout);
        if let Some(credentials) = &self.http.credentials {
            let key = silence.wait(credentials.key()).await??;
            keys.learn(&key);
            self.http.auth.show(&key, request.headers_mut())?;
        }
        let sent = silence.wait(self.http.transport.send(request)).await?;
        let (head, mut body) =
            sent.map_err(|e| e.with_context("provider", self.codec.origin().provider()))?.into_parts();
        if head.status.is_success() {
            return Ok((head.headers, body));
        }
        let mut said = Vec::new();
        while said.len() < MOST_OF_AN_ERROR
            && let Ok(Some(Ok(more))) = timeout(super::answer::DETAILS, body.next()).await
        {
            said.extend_from_slice(&more);
        }
        Err(self.codec.decode_error(head.status, &head.headers, &said))
    }

    pub(crate) fn codec(&self) -> &dyn Codec {
        &*self.codec
    }

    pub(crate) fn longest_silence(&self) -> Duration {
        self.http.idle_timeout
    }

    /// `usage` of one call with what it cost.
    pub(crate) fn price(&self, usage: Usage, answered: Option<&str>) -> Usage {
        self.pricing.price(usage, answered)
    }
}
