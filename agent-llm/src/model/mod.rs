//! A [`Model`] built from a [`Codec`] and a [`Transport`].

mod answer;
mod caller;
mod credentials;
mod errand;
mod exchange;
mod idle_timeout;
mod incoming;
mod settings;
mod shared;
mod signer;

use std::{
    borrow::Cow,
    mem,
    sync::{Arc, PoisonError, RwLock},
};

use agent_core::{
    BoxFuture, Error, Model, ModelInfo, ModelRequest, ModelResponse, Result, ToolSpec, async_trait, boxed,
    model::ToolFinding,
};
use serde_json::Value;
use sha2::{Digest, Sha256};

use self::settings::Http;
pub(crate) use self::{caller::Caller, incoming::Incoming, settings::HttpSettings, shared::default_transport};
pub use self::{credentials::Credentials, signer::Signer};
use crate::{Auth, Codec, models::Pricing, redact::Redactor, wire::json::lay};

/// Context keys of an error that may repeat text of the provider.
const FACTS: [&str; 5] = ["provider", "part", "status", "code", "request_id"];

/// A model behind a [`Codec`]. A call is one exchange; a refused request is sent again if the codec
/// can repair it ([`Codec::adapt`], [`Codec::amend`]). Errors and `Debug` never show the key.
pub(crate) struct HttpModel {
    codec: RwLock<Arc<dyn Codec>>,
    info: ModelInfo,
    pricing: Pricing,
    http: Http,
}

impl HttpModel {
    /// Creates the model; facts missing from `info` come from the catalogue in `settings`.
    ///
    /// # Errors
    /// [`Config`](agent_core::ErrorKind::Config) for an invalid header, or if there is no
    /// transport.
    pub(crate) fn new(codec: Box<dyn Codec>, info: ModelInfo, auth: Auth, settings: HttpSettings) -> Result<Self> {
        let info = settings.catalogue.complete(info);
        let pricing = Pricing::new(settings.catalogue.clone(), &info);
        Ok(Self { info, pricing, codec: RwLock::new(codec.into()), http: settings.ready(auth)? })
    }

    /// Returns the codec, as adapted to the provider's refusals so far.
    pub(crate) fn codec(&self) -> Arc<dyn Codec> {
        self.codec.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Encodes later requests with the adapted codec.
    fn adapt(&self, codec: &Arc<dyn Codec>) {
        *self.codec.write().unwrap_or_else(PoisonError::into_inner) = codec.clone();
    }

    /// `Model::call` without the box.
    fn answer(&self, mut req: ModelRequest) -> impl Future<Output = Result<ModelResponse>> + Send {
        if self.http.tells_session {
            self.tell_session(&mut req);
        }
        async move {
            let mut keys = Redactor::default();
            req.tools.iter().filter_map(|spec| spec.server.as_ref()).for_each(|tool| keys.learn_tool(tool));
            let answered = self.exchange(&req, &mut keys).await;
            let mut answered = answered.map_err(|e| redacted(redacted(e, &self.http.redactor), &keys));
            if let Ok(response) = &mut answered {
                response.usage = self.pricing.price(response.usage, response.model.as_deref());
            }
            answered
        }
    }

    /// Adds the session to the request's extra fields; fields that are set there take precedence.
    fn tell_session(&self, req: &mut ModelRequest) {
        let mut said = Value::Object(self.codec().session_fields(&session_name(&req.cx.ids().session)));
        let params = Arc::make_mut(&mut req.params);
        lay(&mut said, &Value::Object(mem::take(&mut params.extra)));
        if let Value::Object(said) = said {
            params.extra = said;
        }
    }
}

/// Returns the session's id in a form that providers accept.
fn session_name(id: &str) -> Cow<'_, str> {
    /// Providers reject longer names.
    const MOST: usize = 64;
    if id.len() <= MOST {
        return id.into();
    }
    Sha256::digest(id).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[async_trait]
impl Model for HttpModel {
    fn info(&self) -> ModelInfo {
        self.info.clone()
    }

    fn check_tools(&self, tools: &[ToolSpec]) -> Vec<ToolFinding> {
        self.codec().check_tools(tools)
    }

    // Written by hand, because async-trait's box would be filled by copying.
    fn call<'life0, 'async_trait>(&'life0 self, req: ModelRequest) -> BoxFuture<'async_trait, Result<ModelResponse>>
    where
        'life0: 'async_trait,
        Self: 'async_trait,
    {
        boxed(|| self.answer(req))
    }
}

/// Redacts the error: providers repeat keys in their messages.
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
