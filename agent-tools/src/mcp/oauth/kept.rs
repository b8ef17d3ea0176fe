//! Adapter from [`TokenStore`](super::TokenStore) to the credential store of `rmcp`.

use std::sync::{Arc, Mutex, PoisonError};

use agent_core::{Error, ErrorKind, async_trait, tool::Secret};
use rmcp::transport::auth::{AuthError, CredentialRefreshGuard, CredentialStore, StoredCredentials};
use serde_json::Value;

use super::TokenStore;

/// Field of the secret that the client got at registration.
const SECRET: &str = "client_secret";

/// Stored credentials of a server: its tokens, and the secret of the client that owns them.
#[derive(Clone)]
pub(super) struct Kept {
    tokens: Arc<dyn TokenStore>,
    server: String,
    /// Client id and secret, once known.
    client: Arc<Mutex<Option<(String, Secret)>>>,
    /// Held while a token is renewed, so that two connections do not spend the same refresh token.
    renewing: Arc<tokio::sync::Mutex<()>>,
}

fn not_kept(error: &Error) -> AuthError {
    AuthError::CredentialStoreError(error.message().to_owned())
}

impl Kept {
    pub(super) fn new(tokens: Arc<dyn TokenStore>, server: String) -> Self {
        Self { tokens, server, client: Arc::default(), renewing: Arc::default() }
    }

    /// Records the secret of the client `id`, to be stored with its tokens.
    pub(super) fn note(&self, id: &str, secret: Option<Secret>) {
        let known = secret.map(|secret| (id.to_owned(), secret));
        *self.client.lock().unwrap_or_else(PoisonError::into_inner) = known;
    }

    /// Returns the secret of the client `id`.
    pub(super) fn secret_of(&self, id: &str) -> Option<Secret> {
        let client = self.client.lock().unwrap_or_else(PoisonError::into_inner);
        client.as_ref().filter(|(of, _)| of == id).map(|(_, secret)| secret.clone())
    }
}

#[async_trait]
impl CredentialStore for Kept {
    async fn load(&self) -> Result<Option<StoredCredentials>, AuthError> {
        let Some(text) = self.tokens.load(&self.server).await.map_err(|e| not_kept(&e))? else { return Ok(None) };
        // Unreadable credentials count as missing: access is requested again.
        let Ok(mut kept) = serde_json::from_str::<Value>(text.expose()) else { return Ok(None) };
        let secret = kept.as_object_mut().and_then(|kept| kept.remove(SECRET));
        let Ok(credentials) = serde_json::from_value::<StoredCredentials>(kept) else { return Ok(None) };
        if let Some(Value::String(secret)) = secret {
            self.note(&credentials.client_id, Some(Secret::from(secret)));
        }
        Ok(Some(credentials))
    }

    async fn save(&self, credentials: StoredCredentials) -> Result<(), AuthError> {
        let unwritten = |e| not_kept(&Error::new(ErrorKind::Store, "tokens cannot be written").with_source(e));
        let mut kept = serde_json::to_value(&credentials).map_err(unwritten)?;
        if let Some(secret) = self.secret_of(&credentials.client_id) {
            kept[SECRET] = secret.expose().into();
        }
        self.tokens.save(&self.server, Secret::from(kept.to_string())).await.map_err(|e| not_kept(&e))
    }

    async fn clear(&self) -> Result<(), AuthError> {
        self.tokens.remove(&self.server).await.map_err(|e| not_kept(&e))
    }

    async fn acquire_refresh_guard(&self) -> Result<Option<CredentialRefreshGuard>, AuthError> {
        Ok(Some(CredentialRefreshGuard::new(self.renewing.clone().lock_owned().await)))
    }
}
