//! Requests other than completions: files and batches.

use agent_core::Result;
use bytes::Bytes;
use http::{HeaderMap, Request};

use super::{HttpModel, Incoming, redacted};
use crate::{models::Pricing, redact::Redactor};

impl HttpModel {
    /// Sends a request of any kind with the key and the headers of the model; returns the response.
    ///
    /// # Errors
    /// The provider's error, for a bad status.
    pub(crate) async fn open(&self, request: Request<Bytes>) -> Result<(HeaderMap, Incoming)> {
        let mut keys = Redactor::default();
        let opened = match self.try_open(request.clone(), &mut keys).await {
            Err(refused) if self.http.has_another_key(&refused).await => self.try_open(request, &mut keys).await,
            opened => opened,
        };
        opened.map_err(|e| redacted(redacted(e, &self.http.redactor), &keys))
    }

    async fn try_open(&self, request: Request<Bytes>, keys: &mut Redactor) -> Result<(HeaderMap, Incoming)> {
        let (head, mut incoming) = self.http.send(request, self.codec().origin().provider(), keys).await?;
        if head.status.is_success() {
            return Ok((head.headers, incoming));
        }
        let text = incoming.start().await;
        Err(self.codec().decode_error(head.status, &head.headers, &text))
    }

    /// Returns the prices of batch calls.
    pub(crate) fn batch_pricing(&self) -> Pricing {
        self.pricing.of_batches()
    }
}
