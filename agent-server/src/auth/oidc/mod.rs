//! Authentication by tokens of an OpenID Connect issuer.

mod document;
mod jwks;

use std::{collections::BTreeSet, fmt, sync::Arc, time::Duration};

use agent::{Error, Result};
use jsonwebtoken::{Algorithm, DecodingKey, Validation, decode, decode_header};
use serde_json::{Map, Value};

use self::{document::Documents, jwks::Jwks};
use crate::caller::{Caller, CallerLimits, Scope};

/// Accepted signature algorithms, all asymmetric. The token cannot select any other.
const ALGORITHMS: [Algorithm; 4] = [Algorithm::RS256, Algorithm::PS256, Algorithm::ES256, Algorithm::EdDSA];

/// Tolerated difference between the clocks of issuer and server.
const LEEWAY: Duration = Duration::from_secs(30);

/// Authentication by tokens of an OpenID Connect issuer: JWTs for this server, verified with the
/// issuer's public keys.
///
/// The keys are fetched from the location in the issuer's discovery document, cached, and fetched
/// again for an unknown key id, at most every 30 seconds. A token needs an issuer (`iss`), an
/// audience (`aud`) and an expiry (`exp`), and a signature by RS256, PS256, ES256 or EdDSA.
///
/// ```
/// use agent_server::Oidc;
///
/// let oidc = Oidc::builder("https://login.example", "agents").tenant_claim("org_id").build()?;
/// # let _ = oidc;
/// # Ok::<(), agent::Error>(())
/// ```
#[derive(Clone)]
pub struct Oidc(Arc<Inner>);

struct Inner {
    terms: OidcBuilder,
    jwks: Jwks,
}

/// Builder of an [`Oidc`].
#[must_use = "a builder does nothing until it is built"]
#[derive(Clone, Debug)]
pub struct OidcBuilder {
    issuer: String,
    audience: String,
    tenant: Option<String>,
    tenant_claim: String,
    subject_claim: String,
    scope_claim: String,
    limits: CallerLimits,
}

impl Oidc {
    /// Returns a builder for tokens of this issuer, such as `https://login.example`, with this
    /// audience.
    pub fn builder(issuer: impl Into<String>, audience: impl Into<String>) -> OidcBuilder {
        OidcBuilder {
            issuer: issuer.into(),
            audience: audience.into(),
            tenant: None,
            tenant_claim: "tenant".into(),
            subject_claim: "sub".into(),
            scope_claim: "scope".into(),
            limits: CallerLimits::default(),
        }
    }

    /// Returns the caller with this token; none if the token is invalid, expired, or for another
    /// audience.
    ///
    /// # Errors
    /// [`Error`] if the issuer's keys cannot be fetched.
    pub(crate) async fn caller(&self, token: &str) -> Result<Option<Caller>> {
        let Inner { terms, jwks } = &*self.0;
        let Ok(header) = decode_header(token) else { return Ok(None) };
        let Some(kid) = header.kid.filter(|_| ALGORITHMS.contains(&header.alg)) else { return Ok(None) };
        let Some(jwk) = jwks.key(&kid).await? else { return Ok(None) };
        let is_for_it = jwk.common.key_algorithm.is_none_or(|of_key| of_key.to_string() == format!("{:?}", header.alg));
        let Ok(key) = DecodingKey::from_jwk(&jwk) else { return Ok(None) };
        let mut validation = Validation::new(header.alg);
        validation.set_issuer(&[&terms.issuer]);
        validation.set_audience(&[&terms.audience]);
        validation.set_required_spec_claims(&["exp", "iss", "aud"]);
        (validation.validate_nbf, validation.leeway) = (true, LEEWAY.as_secs());
        let claims = decode::<Map<String, Value>>(token, &key, &validation).ok().filter(|_| is_for_it);
        Ok(claims.and_then(|token| terms.caller(&token.claims)))
    }
}

impl OidcBuilder {
    /// Sets one tenant for all callers. Default: the tenant claim of each token.
    pub fn tenant(mut self, tenant: impl Into<String>) -> Self {
        self.tenant = Some(tenant.into());
        self
    }

    /// Sets the claim with the tenant. Default: `tenant`. Tokens without it are rejected.
    pub fn tenant_claim(mut self, name: impl Into<String>) -> Self {
        self.tenant_claim = name.into();
        self
    }

    /// Sets the claim with the subject. Default: `sub`.
    pub fn subject_claim(mut self, name: impl Into<String>) -> Self {
        self.subject_claim = name.into();
        self
    }

    /// Sets the claim with the scopes: a space-separated string or a list. Unknown scopes are
    /// ignored. Default: `scope`; a token without the claim has no permissions.
    pub fn scope_claim(mut self, name: impl Into<String>) -> Self {
        self.scope_claim = name.into();
        self
    }

    /// Sets the limits of each caller. Default: unlimited.
    pub fn limits(mut self, limits: CallerLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Builds the authentication. Does not connect yet.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent::ErrorKind::Config) if the issuer's URL uses neither HTTPS nor a
    /// local host, the audience is empty, or a limit is invalid.
    pub fn build(self) -> Result<Oidc> {
        self.limits.check()?;
        if self.audience.is_empty() {
            return Err(Error::config("the audience must not be empty: set the one of this server"));
        }
        let jwks = Jwks::new(Documents::of(&self.issuer)?);
        Ok(Oidc(Arc::new(Inner { terms: self, jwks })))
    }

    fn caller(&self, claims: &Map<String, Value>) -> Option<Caller> {
        let text = |name: &str| claims.get(name)?.as_str().filter(|text| !text.is_empty());
        let tenant = self.tenant.as_deref().or_else(|| text(&self.tenant_claim))?;
        let subject = text(&self.subject_claim)?;
        Some(Caller::new(tenant, subject).scopes(scopes(claims.get(&self.scope_claim))).limits(self.limits))
    }
}

fn scopes(claim: Option<&Value>) -> BTreeSet<Scope> {
    let names: Vec<&str> = match claim {
        Some(Value::String(text)) => text.split(' ').collect(),
        Some(Value::Array(list)) => list.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    Scope::ALL.into_iter().filter(|scope| names.contains(&scope.as_str())).collect()
}

impl fmt::Debug for Oidc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Oidc").field("issuer", &self.0.terms.issuer).finish_non_exhaustive()
    }
}
