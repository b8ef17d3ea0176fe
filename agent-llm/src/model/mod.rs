//! A [`Model`] made of a [`Codec`] and a [`Transport`].

mod answer;
mod credentials;
mod settings;
mod silence;
mod waits;

use std::{borrow::Cow, fmt, mem, sync::Arc};

use agent_core::{Error, Model, ModelInfo, ModelRequest, ModelResponse, Result, async_trait};
use serde_json::Value;
use sha2::{Digest, Sha256};

use self::settings::Http;
pub(crate) use self::settings::{HttpSettings, default_transport, http_setters};
pub use self::{
    credentials::Credentials,
    settings::{Auth, HttpModelBuilder},
};
use crate::{Codec, models::Pricing, redact::Redactor, wire::json::lay};

/// The facts of an error that may repeat what a provider said.
const FACTS: [&str; 5] = ["provider", "part", "status", "code", "request_id"];

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
    pub(crate) fn answer(&self, mut req: ModelRequest) -> impl Future<Output = Result<ModelResponse>> + Send {
        if self.http.tells_session {
            self.tell_session(&mut req);
        }
        async move {
            let mut keys = Redactor::default();
            let answered = self.exchange(&req, &mut keys).await;
            let mut answered = answered.map_err(|e| redacted(redacted(e, &self.http.redactor), &keys));
            if let Ok(response) = &mut answered {
                response.usage = self.pricing.price(response.usage, response.model.as_deref());
            }
            answered
        }
    }

    /// Adds the session to what is said beside the fields that every provider has; what is said there already wins.
    fn tell_session(&self, req: &mut ModelRequest) {
        let mut said = Value::Object(self.codec.session_fields(&session_name(&req.cx.ids().session)));
        let params = Arc::make_mut(&mut req.params);
        lay(&mut said, &Value::Object(mem::take(&mut params.extra)));
        if let Value::Object(said) = said {
            params.extra = said;
        }
    }
}

/// The session's id, as providers take it.
fn session_name(id: &str) -> Cow<'_, str> {
    /// More is refused.
    const MOST: usize = 64;
    if id.len() <= MOST {
        return id.into();
    }
    Sha256::digest(id).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// [`Model::call`] with the answer of a model. async-trait's box would be filled by copying.
macro_rules! call {
    ($self:ident, $model:expr) => {
        fn call<'life0, 'async_trait>(
            &'life0 $self,
            req: agent_core::ModelRequest,
        ) -> agent_core::BoxFuture<'async_trait, agent_core::Result<agent_core::ModelResponse>>
        where
            'life0: 'async_trait,
            Self: 'async_trait,
        {
            agent_core::boxed(|| $model.answer(req))
        }
    };
}

#[async_trait]
impl Model for HttpModel {
    fn info(&self) -> ModelInfo {
        self.info.clone()
    }

    call!(self, self);
}

/// `Model` and `Debug` of a type around an [`HttpModel`].
macro_rules! http_model {
    ($Model:ident) => {
        #[agent_core::async_trait]
        impl agent_core::Model for $Model {
            fn info(&self) -> agent_core::ModelInfo {
                self.0.info()
            }

            $crate::model::call!(self, self.0);
        }

        impl std::fmt::Debug for $Model {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_tuple(stringify!($Model)).field(&self.0).finish()
            }
        }
    };
}
pub(crate) use {call, http_model};

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
