//! A [`Model`] made of a [`Codec`] and a [`Transport`].

mod answer;
mod settings;
mod silence;

use std::{borrow::Cow, fmt};

use agent_core::{Error, Model, ModelInfo, ModelRequest, ModelResponse, Result, async_trait};

use self::settings::Http;
pub use self::settings::{Auth, HttpModelBuilder};
pub(crate) use self::settings::{HttpSettings, default_transport, http_setters};
use crate::{Codec, models::Pricing, redact::Redactor};

/// The facts of an error that may repeat what a provider said.
const FACTS: [&str; 4] = ["provider", "status", "code", "request_id"];

/// A model behind any [`Codec`]: the way to a wire of your own.
///
/// For the wires of this crate there are models with builders of their own, such as [`OpenAiChat`](crate::OpenAiChat).
/// A failed call is not tried again here: that is [`RetryLayer`](crate::RetryLayer)'s. A refused request is sent once more
/// if the codec knows what to change in it ([`Codec::amend`]). Errors and `Debug` never show the key.
pub struct HttpModel {
    codec: Box<dyn Codec>,
    info: ModelInfo,
    pricing: Pricing,
    http: Http,
}

impl HttpModel {
    /// Begins a model of `codec`.
    pub fn builder(codec: impl Codec) -> HttpModelBuilder {
        HttpModelBuilder::new(Box::new(codec))
    }

    /// What `Model::call` does, without the box.
    pub(crate) async fn answer(&self, req: ModelRequest) -> Result<ModelResponse> {
        let mut response = self.exchange(&req).await.map_err(|e| redacted(e, &self.http.redactor))?;
        response.usage = self.pricing.price(response.usage, response.model.as_deref());
        Ok(response)
    }
}

#[async_trait]
impl Model for HttpModel {
    fn info(&self) -> ModelInfo {
        self.info.clone()
    }

    async fn call(&self, req: ModelRequest) -> Result<ModelResponse> {
        self.answer(req).await
    }
}

/// The error without secrets: providers repeat keys in their messages.
fn redacted(e: Error, redactor: &Redactor) -> Error {
    let message = redactor.redact(e.message());
    let facts = FACTS.into_iter().filter_map(|name| Some((name, redactor.redact(e.context(name)?))));
    let facts: Vec<_> = facts.collect();
    if facts.iter().map(|(_, fact)| fact).chain([&message]).all(|text| matches!(text, Cow::Borrowed(_))) {
        return e;
    }
    let clean = Error::new(e.kind(), message.into_owned()).with_retry(e.retry());
    facts.into_iter().fold(clean, |clean, (name, fact)| clean.with_context(name, fact))
}

impl fmt::Debug for HttpModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpModel").field("info", &self.info).field("http", &self.http).finish_non_exhaustive()
    }
}
