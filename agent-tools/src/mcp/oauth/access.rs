//! OAuth access to one server: obtains and renews its token.

use std::{
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use agent_core::tool::Secret;
use reqwest::Url;
use rmcp::transport::auth::{
    AuthError, AuthorizationManager, AuthorizationMetadata, AuthorizationRequest, AuthorizationSession,
    ClientCredentialsConfig, CredentialStore, OAuthClientConfig, StoredCredentials,
};
use serde_json::Value;
use tokio::sync::Mutex;

use super::{Authorizer, Grant, OAuth, assertion::Key, kept::Kept, network::Network};

/// OAuth access to one server.
pub(in super::super) struct Access {
    how: OAuth,
    url: String,
    network: Arc<Network>,
    kept: Kept,
    manager: Mutex<Option<AuthorizationManager>>,
}

impl Access {
    pub(in super::super) fn new(how: &OAuth, url: &str) -> Self {
        let host = Url::parse(url).ok().and_then(|url| url.host_str().map(str::to_owned));
        let network = Arc::new(Network::new(host.into_iter().chain(how.hosts.iter().cloned()).collect()));
        let kept = Kept::new(how.tokens.clone(), url.to_owned());
        Self { how: how.clone(), url: url.to_owned(), network, kept, manager: Mutex::default() }
    }

    /// Returns the current token, if there is one.
    pub(in super::super) async fn token(&self) -> Result<Option<String>, AuthError> {
        let mut slot = self.manager.lock().await;
        if slot.is_none() {
            *slot = self.known().await?;
        }
        let Some(manager) = &*slot else { return Ok(None) };
        match manager.get_access_token().await {
            Ok(token) => Ok(Some(token)),
            Err(AuthError::AuthorizationRequired) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Restores the manager of a client that was authorised before, from its stored credentials.
    async fn known(&self) -> Result<Option<AuthorizationManager>, AuthError> {
        // A client with its own credentials obtains a new token as easily, so nothing is restored.
        let Grant::User(authorizer) = &self.how.grant else { return Ok(None) };
        let Some(kept) = self.kept.load().await?.filter(|kept| kept.token_response.is_some()) else { return Ok(None) };
        let mut manager = self.manager().await?;
        manager.set_metadata(self.metadata(&manager, None).await?);
        if !manager.initialize_from_store().await? {
            return Ok(None);
        }
        let own = self.how.client.as_ref().filter(|(id, _)| *id == kept.client_id);
        let secret = own.and_then(|(_, secret)| secret.clone()).or_else(|| self.kept.secret_of(&kept.client_id));
        if let Some(secret) = secret {
            let client = OAuthClientConfig::new(kept.client_id, authorizer.redirect_uri());
            manager.configure_client(client.with_client_secret(secret.expose()))?;
        }
        Ok(Some(manager))
    }

    /// Obtains another token in place of the rejected token `sent`. `more` is a missing scope.
    pub(in super::super) async fn renew(
        &self,
        sent: Option<&str>,
        challenge: Option<&str>,
        more: Option<&str>,
    ) -> Result<String, AuthError> {
        let mut slot = self.manager.lock().await;
        let mut scopes = self.how.scopes.clone();
        if let Some(manager) = &*slot {
            // Another task may have renewed the token meanwhile.
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
                scopes.extend(self.kept.load().await?.into_iter().flat_map(|kept| kept.granted_scopes));
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
        let mut manager = AuthorizationManager::new_with_oauth_http_client(&*self.url, self.network.clone()).await?;
        manager.set_credential_store(self.kept.clone());
        Ok(manager)
    }

    /// Fetches the metadata of the authorization server.
    async fn metadata(
        &self,
        manager: &AuthorizationManager,
        challenge: Option<&str>,
    ) -> Result<AuthorizationMetadata, AuthError> {
        let is_named = challenge.is_some_and(|challenge| challenge.contains("resource_metadata"));
        match manager.resolve_metadata_from_challenge(challenge).await {
            Ok(found) => Ok(found.metadata),
            // An MCP server of the first OAuth revision names no authorization server: the metadata
            // at the root of its origin is used, whose issuer may be a part of the same origin. A
            // server that names one must match it.
            Err(AuthError::AuthorizationServerMismatch { expected_issuer, received_issuer })
                if !is_named && !self.network.has_named_a_server() =>
            {
                let origin = |url: &str| Url::parse(url).ok().map(|url| url.origin());
                let own = self.network.metadata_at_root_of(&self.url).await;
                match own.filter(|own| own.issuer.as_deref().and_then(origin) == origin(&self.url)) {
                    Some(own) => Ok(own),
                    None => Err(AuthError::AuthorizationServerMismatch { expected_issuer, received_issuer }),
                }
            }
            Err(error) => Err(error),
        }
    }

    /// Requests access.
    async fn authorized(
        &self,
        challenge: Option<&str>,
        scopes: Vec<String>,
    ) -> Result<AuthorizationManager, AuthError> {
        let mut manager = self.manager().await?;
        let server = self.metadata(&manager, challenge).await?;
        manager.set_metadata(server.clone());
        let scopes = if scopes.is_empty() { manager.select_initial_scopes(&[]).await } else { scopes };
        let id = self.how.client.as_ref().map(|(id, _)| id.clone()).unwrap_or_default();
        match &self.how.grant {
            Grant::User(authorizer) => self.by_user(&**authorizer, manager, &server, challenge, scopes).await,
            Grant::Secret => {
                let secret = self.how.client.as_ref().and_then(|(_, secret)| secret.as_ref());
                let client_secret = secret.map(|secret| secret.expose().to_owned()).unwrap_or_default();
                let resource = Some(self.url.clone());
                let own = ClientCredentialsConfig::ClientSecret { client_id: id, client_secret, scopes, resource };
                manager.configure_client_credentials(&own)?;
                manager.exchange_client_credentials(&own).await?;
                Ok(manager)
            }
            Grant::Key(key) => {
                let key = key.as_deref().ok_or(AuthError::NoAuthorizationSupport)?;
                self.by_key(&id, key, manager, &server, scopes).await
            }
        }
    }

    async fn by_user(
        &self,
        authorizer: &dyn Authorizer,
        mut manager: AuthorizationManager,
        server: &AuthorizationMetadata,
        challenge: Option<&str>,
        scopes: Vec<String>,
    ) -> Result<AuthorizationManager, AuthError> {
        let takes_url = server.additional_fields.get("client_id_metadata_document_supported").and_then(Value::as_bool);
        let redirect = authorizer.redirect_uri();
        let client = match (&self.how.client, &self.how.client_metadata_url) {
            (Some(client), _) => Some(client.clone()),
            (None, Some(_)) if takes_url == Some(true) => None,
            (None, _) => {
                let asked: Vec<&str> = scopes.iter().map(String::as_str).collect();
                let registered = manager.register_client(&self.how.name, &redirect, &asked).await?;
                Some((registered.client_id, registered.client_secret.map(Secret::from)))
            }
        };
        let mut request = AuthorizationRequest::new(redirect).with_client_name(self.how.name.clone());
        request = request.with_initial_scope_selection().with_scopes(scopes);
        request.challenge = challenge.map(str::to_owned);
        request.client_metadata_url.clone_from(&self.how.client_metadata_url);
        if let Some((id, secret)) = client {
            request.client_secret = secret.as_ref().map(|secret| secret.expose().to_owned());
            self.kept.note(&id, secret);
            request.client_id = Some(id);
        }
        let session = AuthorizationSession::new(manager, request).await.map_err(|(_, error)| error)?;
        let asked = tokio::time::timeout(self.how.patience, authorizer.authorize(session.get_authorization_url()));
        let failed = |message: &str| AuthError::AuthorizationFailed(message.to_owned());
        let came = asked.await.map_err(|_| failed("the user did not answer in time"))?;
        session.handle_callback_url(&came.map_err(|error| failed(error.message()))?).await?;
        Ok(session.auth_manager)
    }

    async fn by_key(
        &self,
        id: &str,
        key: &Key,
        mut manager: AuthorizationManager,
        server: &AuthorizationMetadata,
        scopes: Vec<String>,
    ) -> Result<AuthorizationManager, AuthError> {
        let mut token = key.token(id, &self.network, server, &scopes, &self.url).await?;
        // A client that signs assertions gets another token with a new assertion.
        token.as_object_mut().and_then(|token| token.remove("refresh_token"));
        let granted = token["scope"].as_str().map(|given| given.split_whitespace().map(str::to_owned).collect());
        let response = serde_json::from_value(token)
            .map_err(|_| AuthError::ClientCredentialsError("the authorization server gave no token".to_owned()))?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let got = StoredCredentials::new(id.to_owned(), Some(response), granted.unwrap_or(scopes), Some(now));
        self.kept.save(got.with_issuer(server.issuer.clone())).await?;
        manager.configure_client_id(id)?;
        Ok(manager)
    }
}
