//! Authentication: from a request to its [`Caller`](crate::Caller).

mod keys;
mod known;
mod login;
#[cfg(feature = "oidc")]
mod oidc;
mod rate;

use std::sync::Arc;

use axum::{
    extract::{Request, State},
    middleware::Next,
    response::{IntoResponse, Response},
};
use http::{HeaderMap, header};

pub use self::keys::{Key, Keys};
pub(crate) use self::login::router;
#[cfg(feature = "oidc")]
pub use self::oidc::{Oidc, OidcBuilder};
use self::{known::Known, rate::Rates};
use crate::{caller::Caller, error::ApiError, spending::Allowance};

/// Log target of the audit trail.
pub(crate) const AUDIT: &str = "agent_server::audit";

/// Logs a request that was rejected before its caller was known.
pub(crate) fn refused(request: &Request, error: &ApiError) {
    let (path, status, code) = (request.uri().path(), error.status().as_u16(), error.code());
    tracing::warn!(target: AUDIT, method = %request.method(), path, status, code, "refused");
}

/// Authentication settings. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Auth(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// None without keys: without an issuer too, every client is the tenant `local`.
    keys: Option<Known>,
    #[cfg(feature = "oidc")]
    oidc: Option<Oidc>,
    rates: Rates,
}

impl Auth {
    /// Authenticates callers by these keys or tokens; without either, accepts every client.
    pub(crate) fn new(keys: Option<Keys>, #[cfg(feature = "oidc")] oidc: Option<Oidc>) -> Self {
        Self(Arc::new(Inner {
            keys: keys.map(Known::new),
            #[cfg(feature = "oidc")]
            oidc,
            rates: Rates::default(),
        }))
    }

    /// True if no authentication is configured.
    pub(crate) fn is_open(&self) -> bool {
        #[cfg(feature = "oidc")]
        if self.0.oidc.is_some() {
            return false;
        }
        self.0.keys.is_none()
    }

    /// Returns the spending allowances of all keys.
    pub(crate) fn allowances(&self) -> Vec<Allowance> {
        self.0.keys.as_ref().map(Known::allowances).unwrap_or_default()
    }

    /// Authenticates the caller of a request.
    async fn caller(&self, headers: &HeaderMap) -> Result<Caller, ApiError> {
        if self.is_open() {
            return Ok(Caller::new("local", "local").scopes(crate::Scope::ALL));
        }
        let refused = || {
            ApiError::unauthenticated(
                "authentication required: send 'Authorization: Bearer <key>' with a key of this server",
            )
        };
        let secret = bearer(headers).or_else(|| login::cookie(headers)).ok_or_else(refused)?;
        if let Some(caller) = self.0.keys.as_ref().and_then(|keys| keys.caller(secret)) {
            return Ok(caller);
        }
        #[cfg(feature = "oidc")]
        if let Some(oidc) = &self.0.oidc {
            let known = oidc.caller(secret).await.map_err(|error| {
                tracing::error!(%error, "the token issuer could not be reached");
                let message = "the token issuer cannot be reached: see the server's log";
                ApiError::new(http::StatusCode::SERVICE_UNAVAILABLE, "issuer", message)
            })?;
            return known.ok_or_else(refused);
        }
        Err(refused())
    }
}

/// Middleware that authenticates the caller and enforces its request rate. Trusts a caller that an
/// outer layer has set.
pub(crate) async fn authenticate(State(auth): State<Auth>, mut request: Request, next: Next) -> Response {
    let known = request.extensions().get::<Caller>().cloned();
    let found = match known {
        Some(known) => Ok(known),
        None => auth.caller(request.headers()).await,
    };
    let caller = match found {
        Ok(caller) => caller,
        Err(error) => {
            refused(&request, &error);
            return error.into_response();
        }
    };
    if let Err(wait) = auth.0.rates.take(&caller) {
        let (tenant, subject, path) = (caller.tenant(), caller.subject(), request.uri().path());
        tracing::warn!(target: AUDIT, tenant, subject, method = %request.method(), path, status = 429, "refused");
        return ApiError::too_many("rate_limited", "too many requests: retry after the given time", wait)
            .into_response();
    }
    request.extensions_mut().insert(caller.clone());
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let response = next.run(request).await;
    let (status, tenant, subject) = (response.status().as_u16(), caller.tenant(), caller.subject());
    if method.is_safe() {
        tracing::debug!(target: AUDIT, tenant, subject, %method, path, status, "read");
    } else {
        tracing::info!(target: AUDIT, tenant, subject, %method, path, status, "changed");
    }
    response
}

/// Returns the bearer token of a request.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let said = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, secret) = said.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| secret.trim())
}
