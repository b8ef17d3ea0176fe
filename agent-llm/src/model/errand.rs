//! Requests that ask for something else than an answer.

use agent_core::Result;
use bytes::Bytes;
use http::{HeaderMap, Request};

use super::{HttpModel, Incoming, redacted};
use crate::{Codec, models::Pricing, redact::Redactor};

impl HttpModel {
    /// What the provider answers to a request of any kind, shown the key and with the headers of the model.
    ///
    /// # Errors
    /// The provider's, for a bad status.
    pub(crate) async fn open(&self, request: Request<Bytes>) -> Result<(HeaderMap, Incoming)> {
        let mut keys = Redactor::default();
        let opened = match self.try_open(request.clone(), &mut keys).await {
            Err(refused) if self.http.has_another_key(&refused).await => self.try_open(request, &mut keys).await,
            opened => opened,
        };
        opened.map_err(|e| redacted(redacted(e, &self.http.redactor), &keys))
    }

    async fn try_open(&self, request: Request<Bytes>, keys: &mut Redactor) -> Result<(HeaderMap, Incoming)> {
        let (head, mut incoming) = self.http.send(request, self.codec.origin().provider(), keys).await?;
        if head.status.is_success() {
            return Ok((head.headers, incoming));
        }
        let text = incoming.start().await;
        Err(self.codec.decode_error(head.status, &head.headers, &text))
    }

    pub(crate) fn codec(&self) -> &dyn Codec {
        &*self.codec
    }

    /// What calls of a batch cost.
    pub(crate) fn batch_pricing(&self) -> Pricing {
        self.pricing.of_batches()
    }
}
