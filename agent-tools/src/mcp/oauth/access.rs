//! Access to one server: its token, renewed and asked for anew.

use std::sync::Arc;

use agent_core::{Error, ErrorKind, Result, async_trait, tool::Secret};
use reqwest::Url;
use rmcp::transport::auth::{
    AuthError, AuthorizationManager, AuthorizationRequest, AuthorizationSession, ClientCredentialsConfig,
    CredentialRefreshGuard, CredentialStore, StoredCredentials,
};
use tokio::sync::Mutex;

use super::{Authorizer, Grant, OAuth, TokenStore, network::Network};

/// Access to one server.
pub(in super::super) struct Access {
    how: OAuth,
    url: String,
    manager: Mutex<Option<AuthorizationManager>>,
    /// Held while a token is renewed, so that two connections do not use up one refresh token.
    renewing: Arc<Mutex<()>>,
}

impl Access {
    pub(in super::super) fn new(how: &OAuth, url: &str) -> Self {
        Self { how: how.clone(), url: url.to_owned(), manager: Mutex::default(), renewing: Arc::default() }
    }

    /// The token there is.
    pub(in super::super) async fn token(&self) -> Result<Option<String>, AuthError> {
        let mut slot = self.manager.lock().await;
        if slot.is_none() {
            let mut manager = self.manager().await?;
            // What was kept of a client's own credentials is had again as easily.
            if matches!(self.how.grant, Grant::Client) || !manager.initialize_from_store().await? {
                return Ok(None);
            }
            *slot = Some(manager);
        }
        let Some(manager) = &*slot else { return Ok(None) };
        match manager.get_access_token().await {
            Ok(token) => Ok(Some(token)),
            Err(AuthError::AuthorizationRequired) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Another token than the one that was `sent` and refused. `more` is a scope that it lacks.
    pub(in super::super) async fn renew(
        &self,
        sent: Option<&str>,
        challenge: Option<&str>,
        more: Option<&str>,
    ) -> Result<String, AuthError> {
        let mut slot = self.manager.lock().await;
        let mut scopes = self.how.scopes.clone();
        if let Some(manager) = &*slot {
            // Somebody else may have renewed it meanwhile.
            if let Ok(token) = manager.get_access_token().await
                && Some(&*token) != sent
            {
                return Ok(token);
            }
            if more.is_none()
                && let Ok(_renewed) = manager.refresh_token().await
            {
                return manager.get_access_token().await;
            }
            if more.is_some() {
                scopes.extend(manager.get_current_scopes().await);
            }
        }
        scopes.extend(more.into_iter().flat_map(str::split_whitespace).map(str::to_owned));
        let mut known = std::collections::BTreeSet::new();
        scopes.retain(|scope| known.insert(scope.clone()));
        let manager = self.authorized(challenge, scopes).await?;
        let token = manager.get_access_token().await?;
        *slot = Some(manager);
        Ok(token)
    }

    async fn manager(&self) -> Result<AuthorizationManager, AuthError> {
        let host = Url::parse(&self.url).ok().and_then(|url| url.host_str().map(str::to_owned));
        let hosts = host.into_iter().chain(self.how.hosts.iter().cloned()).collect();
        let network = Arc::new(Network { hosts });
        let mut manager = AuthorizationManager::new_with_oauth_http_client(&*self.url, network).await?;
        manager.set_credential_store(Kept {
            tokens: self.how.tokens.clone(),
            server: self.url.clone(),
            renewing: self.renewing.clone(),
        });
        Ok(manager)
    }

    /// Asks for access.
    async fn authorized(
        &self,
        challenge: Option<&str>,
        scopes: Vec<String>,
    ) -> Result<AuthorizationManager, AuthError> {
        let mut manager = self.manager().await?;
        let found = manager.resolve_metadata_from_challenge(challenge).await?;
        manager.set_metadata(found.metadata);
        match &self.how.grant {
            Grant::User(authorizer) => self.by_user(&**authorizer, manager, challenge, scopes).await,
            Grant::Client => {
                let (client_id, secret) = self.how.client.clone().unwrap_or_default();
                let client_secret = secret.map(|secret| secret.expose().to_owned()).unwrap_or_default();
                let scopes = if scopes.is_empty() { manager.select_initial_scopes(&[]).await } else { scopes };
                let resource = Some(self.url.clone());
                let own = ClientCredentialsConfig::ClientSecret { client_id, client_secret, scopes, resource };
                manager.configure_client_credentials(&own)?;
                manager.exchange_client_credentials(&own).await?;
                Ok(manager)
            }
        }
    }

    async fn by_user(
        &self,
        authorizer: &dyn Authorizer,
        manager: AuthorizationManager,
        challenge: Option<&str>,
        scopes: Vec<String>,
    ) -> Result<AuthorizationManager, AuthError> {
        let mut request = AuthorizationRequest::new(authorizer.redirect_uri()).with_client_name(self.how.name.clone());
        request = request.with_initial_scope_selection().with_scopes(scopes);
        request.challenge = challenge.map(str::to_owned);
        request.client_metadata_url.clone_from(&self.how.client_metadata_url);
        if let Some((id, secret)) = &self.how.client {
            request.client_id = Some(id.clone());
            request.client_secret = secret.as_ref().map(|secret| secret.expose().to_owned());
        }
        let session = AuthorizationSession::new(manager, request).await.map_err(|(_, error)| error)?;
        let asked = tokio::time::timeout(self.how.patience, authorizer.authorize(session.get_authorization_url()));
        let failed = |message: &str| AuthError::AuthorizationFailed(message.to_owned());
        let came = asked.await.map_err(|_| failed("the user did not answer in time"))?;
        session.handle_callback_url(&came.map_err(|error| failed(error.message()))?).await?;
        Ok(session.auth_manager)
    }
}

/// What is kept for a server, in the form of the library.
struct Kept {
    tokens: Arc<dyn TokenStore>,
    server: String,
    renewing: Arc<Mutex<()>>,
}

fn not_kept(error: &Error) -> AuthError {
    AuthError::CredentialStoreError(error.message().to_owned())
}

#[async_trait]
impl CredentialStore for Kept {
    async fn load(&self) -> Result<Option<StoredCredentials>, AuthError> {
        let text = self.tokens.load(&self.server).await.map_err(|e| not_kept(&e))?;
        // What nobody can read is as good as nothing: access is asked for again.
        Ok(text.and_then(|text| serde_json::from_str(text.expose()).ok()))
    }

    async fn save(&self, credentials: StoredCredentials) -> Result<(), AuthError> {
        let text = serde_json::to_string(&credentials)
            .map_err(|e| not_kept(&Error::new(ErrorKind::Store, "tokens cannot be written").with_source(e)))?;
        self.tokens.save(&self.server, Secret::from(text)).await.map_err(|e| not_kept(&e))
    }

    async fn clear(&self) -> Result<(), AuthError> {
        self.tokens.remove(&self.server).await.map_err(|e| not_kept(&e))
    }

    async fn acquire_refresh_guard(&self) -> Result<Option<CredentialRefreshGuard>, AuthError> {
        Ok(Some(CredentialRefreshGuard::new(self.renewing.clone().lock_owned().await)))
    }
}
