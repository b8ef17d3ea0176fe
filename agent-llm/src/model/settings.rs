//! How requests are sent: what models of all wires have in common.

use std::{fmt, sync::Arc, time::Duration};

use agent_core::{Error, ModelInfo, Result};
use http::{HeaderMap, HeaderName, HeaderValue, header};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};

use super::{Credentials, HttpModel, waits::Waits};
use crate::{Catalogue, Codec, Transport, models::Pricing, redact::Redactor};

/// How a key is shown to a provider.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Auth {
    /// `authorization: Bearer KEY`.
    #[default]
    Bearer,
    /// The key alone, in this header.
    Header(String),
}

impl Auth {
    /// Puts the key into the headers of a request.
    ///
    /// # Errors
    /// [`Config`](agent_core::ErrorKind::Config) if HTTP does not allow it there.
    pub(super) fn show(&self, key: &str, headers: &mut HeaderMap) -> Result<()> {
        match self {
            Self::Bearer => insert(headers, header::AUTHORIZATION.as_str(), &format!("Bearer {key}")),
            Self::Header(name) => insert(headers, name, key),
        }
    }
}

/// What a builder has been told.
pub(crate) struct HttpSettings {
    pub(crate) api_key: Option<SecretString>,
    pub(crate) credentials: Option<Arc<dyn Credentials>>,
    pub(crate) transport: Option<Arc<dyn Transport>>,
    pub(crate) headers: Vec<(String, SecretString)>,
    pub(crate) first_timeout: Option<Duration>,
    pub(crate) idle_timeout: Duration,
    pub(crate) max_answer: usize,
    pub(crate) tells_session: bool,
    pub(crate) catalogue: Catalogue,
}

/// Ready to send.
pub(super) struct Http {
    pub(super) transport: Arc<dyn Transport>,
    pub(super) headers: HeaderMap,
    pub(super) auth: Auth,
    pub(super) credentials: Option<Arc<dyn Credentials>>,
    pub(super) redactor: Redactor,
    pub(super) waits: Waits,
    pub(super) idle_timeout: Duration,
    pub(super) max_answer: usize,
    pub(super) tells_session: bool,
}

impl Default for HttpSettings {
    fn default() -> Self {
        Self {
            api_key: None,
            credentials: None,
            transport: None,
            headers: Vec::new(),
            first_timeout: None,
            idle_timeout: Duration::from_secs(300),
            max_answer: 64 << 20,
            tells_session: false,
            catalogue: Catalogue::builtin(),
        }
    }
}

impl HttpSettings {
    fn ready(self, auth: Auth) -> Result<Http> {
        let mut headers = HeaderMap::new();
        if let Some(key) = &self.api_key {
            auth.show(key.expose_secret(), &mut headers)?;
        }
        for (name, value) in &self.headers {
            insert(&mut headers, name, value.expose_secret())?;
        }
        let mut redactor = Redactor::default();
        redactor.learn_headers(&headers);
        if let Some(key) = &self.api_key {
            redactor.learn(key.expose_secret());
        }
        let transport = self.transport.map_or_else(default_transport, Ok)?;
        let Self { credentials, idle_timeout, max_answer, tells_session, .. } = self;
        let first_timeout = self.first_timeout.unwrap_or(idle_timeout);
        Ok(Http {
            transport,
            headers,
            auth,
            credentials,
            redactor,
            waits: Waits::new(first_timeout),
            idle_timeout,
            max_answer,
            tells_session,
        })
    }
}

fn insert(headers: &mut HeaderMap, name: &str, value: &str) -> Result<()> {
    let invalid = || Error::config(format!("the header '{name}' has a name or a value that HTTP does not allow"));
    let name = HeaderName::try_from(name).map_err(|_| invalid())?;
    let mut value = HeaderValue::try_from(value).map_err(|_| invalid())?;
    value.set_sensitive(true); // it may hold a key: `Debug` must not show it
    headers.insert(name, value);
    Ok(())
}

#[cfg(feature = "http")]
pub(crate) fn default_transport() -> Result<Arc<dyn Transport>> {
    Ok(Arc::new(crate::HttpTransport::new()))
}

#[cfg(not(feature = "http"))]
pub(crate) fn default_transport() -> Result<Arc<dyn Transport>> {
    Err(Error::config("there is no transport: give one with transport(..), or enable the feature 'http'"))
}

/// The setters of a builder that has [`HttpSettings`] in its field `http`.
macro_rules! http_setters {
    () => {
        /// Sets the key. Without one, none is sent.
        #[must_use]
        pub fn api_key(mut self, key: impl Into<String>) -> Self {
            self.http.api_key = Some(secrecy::SecretString::from(key.into()));
            self
        }

        /// Asks for the key before every request: for one that does not last. It takes the place of `api_key`.
        #[must_use]
        pub fn credentials(mut self, credentials: impl $crate::Credentials) -> Self {
            self.http.credentials = Some(std::sync::Arc::new(credentials));
            self
        }

        /// Sends this header with every request.
        #[must_use]
        pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
            self.http.headers.push((name.into(), secrecy::SecretString::from(value.into())));
            self
        }

        /// Sets how requests travel. Default: a [`HttpTransport`](crate::HttpTransport) of the model's own.
        #[must_use]
        pub fn transport(mut self, transport: impl $crate::Transport) -> Self {
            self.http.transport = Some(std::sync::Arc::new(transport));
            self
        }

        /// Sets the longest wait until the answer begins. One that is not streamed begins when it is complete. Default: as
        /// the longest silence.
        #[must_use]
        pub fn first_timeout(mut self, longest: std::time::Duration) -> Self {
            self.http.first_timeout = Some(longest);
            self
        }

        /// Sets the longest silence between any two pieces of the answer. Default: 300 s.
        #[must_use]
        pub fn idle_timeout(mut self, longest: std::time::Duration) -> Self {
            self.http.idle_timeout = longest;
            self
        }

        /// Sets the most bytes that one answer may have on the wire, streamed or not. Default: 64 MiB.
        #[must_use]
        pub fn max_answer(mut self, bytes: usize) -> Self {
            self.http.max_answer = bytes;
            self
        }

        /// Tells the provider for which session it works, in the fields that it has for that: it finds its cache again, and
        /// tells those who misuse it from others. OpenAI takes it as `prompt_cache_key` and `safety_identifier`, servers that
        /// are [alike](crate::Profile::session_fields) as `user`, Anthropic as `metadata.user_id`; Gemini has no such field.
        /// What a request says itself in [`ModelParams::extra`](agent_core::ModelParams) wins.
        ///
        /// The session's id is sent as it is, or as its SHA-256 if it is longer than the 64 characters that providers take:
        /// an id that names a person tells them who it is. Default: it is not told.
        #[must_use]
        pub fn tell_session(mut self) -> Self {
            self.http.tells_session = true;
            self
        }

        /// Sets what is known of models: from it come the context window, if none was set, and what calls cost.
        /// Default: [`Catalogue::builtin`](crate::Catalogue::builtin).
        #[must_use]
        pub fn catalogue(mut self, models: $crate::Catalogue) -> Self {
            self.http.catalogue = models;
            self
        }
    };
}
pub(crate) use http_setters;

/// Makes an [`HttpModel`].
pub struct HttpModelBuilder {
    codec: Box<dyn Codec>,
    info: ModelInfo,
    auth: Auth,
    http: HttpSettings,
}

impl HttpModelBuilder {
    pub(super) fn new(codec: Box<dyn Codec>) -> Self {
        let origin = codec.origin();
        let info = ModelInfo::new(origin.model()).with_provider(origin.provider());
        Self { codec, info, auth: Auth::default(), http: HttpSettings::default() }
    }

    http_setters!();

    pub(crate) fn http(mut self, http: HttpSettings) -> Self {
        self.http = http;
        self
    }

    /// Sets how the key is shown to the provider. Default: [`Auth::Bearer`].
    #[must_use]
    pub fn auth(mut self, auth: Auth) -> Self {
        self.auth = auth;
        self
    }

    /// Sets what is known of the model. What it leaves open comes from the catalogue, and whether it is held to schemas if the
    /// catalogue knows. Default: its name and its provider.
    #[must_use]
    pub fn info(mut self, info: ModelInfo) -> Self {
        self.info = info;
        self
    }

    /// Makes the model.
    ///
    /// # Errors
    /// [`Config`](agent_core::ErrorKind::Config) for a header that HTTP does not allow, or if there is no transport.
    pub fn build(self) -> Result<HttpModel> {
        let info = self.http.catalogue.complete(self.info);
        let pricing = Pricing::new(self.http.catalogue.clone(), &info);
        Ok(HttpModel { info, pricing, codec: self.codec, http: self.http.ready(self.auth)? })
    }
}

impl fmt::Debug for HttpSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpSettings")
            .field("api_key", &self.api_key)
            .field("headers", &self.headers)
            .field("first_timeout", &self.first_timeout)
            .field("idle_timeout", &self.idle_timeout)
            .field("max_answer", &self.max_answer)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for HttpModelBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpModelBuilder").field("info", &self.info).field("http", &self.http).finish_non_exhaustive()
    }
}

impl fmt::Debug for Http {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http")
            .field("headers", &self.headers)
            .field("first_timeout", &self.waits.longest())
            .field("idle_timeout", &self.idle_timeout)
            .field("max_answer", &self.max_answer)
            .finish_non_exhaustive()
    }
}
