//! Sending of requests, shared by all kinds of callers.

use agent_core::{Error, ErrorKind, Result};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, response::Parts};

use super::{idle_timeout::IdleTimeout, incoming::Incoming, settings::Http};
use crate::redact::Redactor;

/// Header that lists beta features: those of the model are merged with those of the request.
const BETAS: &str = "anthropic-beta";

/// Merges the features in the request's headers with `more`.
fn with_betas(headers: &HeaderMap, more: &HeaderValue) -> HeaderValue {
    let Some(asked) = headers.get(BETAS).filter(|asked| *asked != more) else { return more.clone() };
    HeaderValue::from_bytes(&[asked.as_bytes(), more.as_bytes()].join(&b","[..])).unwrap_or_else(|_| more.clone())
}

impl Http {
    /// Sends a request with its headers and its key; returns the head of the answer and its body as
    /// a stream. `keys` records the keys in use, for redaction.
    pub(super) async fn send(
        &self,
        mut request: Request<Bytes>,
        provider: &str,
        keys: &mut Redactor,
    ) -> Result<(Parts, Incoming)> {
        for (name, value) in &self.headers {
            let value = if name.as_str() == BETAS { with_betas(request.headers(), value) } else { value.clone() };
            request.headers_mut().insert(name.clone(), value);
        }
        let mut idle_timeout = IdleTimeout::new(self.first_timeout, self.idle_timeout);
        if let Some(credentials) = &self.credentials {
            let key = idle_timeout.wait(credentials.key()).await??;
            keys.learn(&key);
            self.auth.show(&key, request.headers_mut())?;
        } else if let Some(signer) = &self.signer {
            idle_timeout.wait(signer.sign(&mut request)).await??;
            keys.learn_headers(request.headers());
        }
        let sent = idle_timeout.wait(self.transport.send(request)).await?;
        let whose = |e: Error| e.with_context("provider", provider);
        let (head, body) = sent.map_err(whose)?.into_parts();
        Ok((head, Incoming { body, idle_timeout, left: self.max_answer }))
    }

    /// Returns true if a refused request may be sent once more with another key.
    pub(super) async fn has_another_key(&self, refused: &Error) -> bool {
        match (&self.credentials, &self.signer) {
            _ if refused.kind() != ErrorKind::Authentication => false,
            (Some(credentials), _) => credentials.refused().await,
            (None, Some(signer)) => signer.refused().await,
            (None, None) => false,
        }
    }
}
