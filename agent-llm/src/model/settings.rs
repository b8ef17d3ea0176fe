//! HTTP settings shared by models of all wires.

use std::{fmt, sync::Arc, time::Duration};

use agent_core::Result;
use http::HeaderMap;
use secrecy::{ExposeSecret, SecretString};

use super::{Credentials, Signer, shared::default_transport};
use crate::{Auth, Catalogue, Transport, auth::insert, redact::Redactor};

/// Settings of a builder.
pub(crate) struct HttpSettings {
    pub(crate) api_key: Option<SecretString>,
    pub(crate) credentials: Option<Arc<dyn Credentials>>,
    pub(crate) signer: Option<Arc<dyn Signer>>,
    pub(crate) transport: Option<Arc<dyn Transport>>,
    /// True if the transport may add a key, or need none.
    pub(crate) may_bring_key: bool,
    pub(crate) headers: Vec<(String, SecretString)>,
    pub(crate) first_timeout: Option<Duration>,
    pub(crate) idle_timeout: Duration,
    pub(crate) max_answer: usize,
    pub(crate) tells_session: bool,
    pub(crate) catalogue: Catalogue,
}

/// Validated settings, ready for requests.
pub(super) struct Http {
    pub(super) transport: Arc<dyn Transport>,
    pub(super) headers: HeaderMap,
    pub(super) auth: Auth,
    pub(super) credentials: Option<Arc<dyn Credentials>>,
    pub(super) signer: Option<Arc<dyn Signer>>,
    pub(super) redactor: Redactor,
    pub(super) first_timeout: Duration,
    pub(super) idle_timeout: Duration,
    pub(super) max_answer: usize,
    pub(super) tells_session: bool,
}

impl Default for HttpSettings {
    fn default() -> Self {
        Self {
            api_key: None,
            credentials: None,
            signer: None,
            transport: None,
            may_bring_key: false,
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
    pub(super) fn ready(self, auth: Auth) -> Result<Http> {
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
        let Self { credentials, signer, idle_timeout, max_answer, tells_session, .. } = self;
        let first_timeout = self.first_timeout.unwrap_or(idle_timeout);
        Ok(Http {
            transport,
            headers,
            auth,
            credentials,
            signer,
            redactor,
            first_timeout,
            idle_timeout,
            max_answer,
            tells_session,
        })
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
