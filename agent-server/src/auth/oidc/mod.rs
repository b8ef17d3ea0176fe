//! Tokens of an issuer: who asks is whom an OpenID provider knows.

mod document;
mod jwks;

use std::{collections::BTreeSet, fmt, sync::Arc, time::Duration};

use agent::{Error, Result};
use jsonwebtoken::{Algorithm, DecodingKey, Validation, decode, decode_header};
use serde_json::{Map, Value};

use self::{document::Documents, jwks::Jwks};
use crate::caller::{Caller, CallerLimits, Scope};

/// The algorithms by which a token may be signed: those of a private and a public key. A token does not choose among others.
const ALGORITHMS: [Algorithm; 4] = [Algorithm::RS256, Algorithm::PS256, Algorithm::ES256, Algorithm::EdDSA];

/// How far the clocks of issuer and server may be apart.
const LEEWAY: Duration = Duration::from_secs(30);

/// Callers who come with a token of an issuer (OpenID Connect): a JWT for this server, which is checked by the issuer's public keys.
///
/// The keys are read as the issuer's discovery document says, kept, and read again for a key that is not known, at most each half minute.
/// A token needs an issuer (`iss`), an audience (`aud`) and an end (`exp`), and is signed by RS256, PS256, ES256 or EdDSA.
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

/// An [`Oidc`] in the making.
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
    /// Tokens of this issuer, such as `https://login.example`, for this audience.
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

    /// Who comes with this token; none if it is none of the issuer's for this server, or is not valid now.
    ///
    /// # Errors
    /// If the issuer's keys cannot be read.
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
    /// Sets the one tenant of all callers. Default: each token says it.
    pub fn tenant(mut self, tenant: impl Into<String>) -> Self {
        self.tenant = Some(tenant.into());
        self
    }

    /// Sets the claim that has the tenant. Default: `tenant`. A token without it is refused.
    pub fn tenant_claim(mut self, name: impl Into<String>) -> Self {
        self.tenant_claim = name.into();
        self
    }

    /// Sets the claim that says who it is. Default: `sub`.
    pub fn subject_claim(mut self, name: impl Into<String>) -> Self {
        self.subject_claim = name.into();
        self
    }

    /// Sets the claim that has the scopes: a text with spaces, or a list. Others than this server's are passed over. Default: `scope`; a
    /// token without the claim may do nothing.
    pub fn scope_claim(mut self, name: impl Into<String>) -> Self {
        self.scope_claim = name.into();
        self
    }

    /// Sets what each caller may use. Default: nothing is limited.
    pub fn limits(mut self, limits: CallerLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Puts it together. Nothing is read yet.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent::ErrorKind::Config) for an issuer that is not reached by HTTPS, nor on this machine; without an audience.
    pub fn build(self) -> Result<Oidc> {
        if self.audience.is_empty() {
            return Err(Error::config("tokens need an audience: say which is this server's"));
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
