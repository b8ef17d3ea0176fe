//! Authenticated callers.

use std::{collections::BTreeSet, sync::Arc};

use axum::extract::FromRequestParts;
use http::request::Parts;
use serde::{Deserialize, Serialize};

use crate::{error::ApiError, webhooks::Webhook};

/// Permission of a caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Scope {
    /// Read agents, runs, questions and sessions.
    Read,
    /// Start, steer, pause, cancel and resume runs; upload files; fork, undo, title and replay.
    Run,
    /// Answer questions.
    Answer,
    /// Delete sessions.
    Delete,
    /// Read the metrics, which cover all tenants.
    Metrics,
}

impl Scope {
    /// All scopes.
    pub const ALL: [Self; 5] = [Self::Read, Self::Run, Self::Answer, Self::Delete, Self::Metrics];

    /// Returns the name of the scope in a key file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Run => "run",
            Self::Answer => "answer",
            Self::Delete => "delete",
            Self::Metrics => "metrics",
        }
    }
}

/// Authenticated caller: a tenant, whose sessions are isolated from all others, and a subject of
/// that tenant.
///
/// Handlers receive it as an extractor. A layer of your own around
/// [`Server::router`](crate::Server::router) can insert it into the request's extensions; it is
/// then trusted, and no key is required.
///
/// ```
/// use agent_server::{Caller, Scope};
///
/// let caller = Caller::new("teapots", "ada").scopes([Scope::Read, Scope::Answer]);
/// assert!(caller.require(Scope::Answer).is_ok() && caller.require(Scope::Run).is_err());
/// assert!(caller.may_use("support"));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Caller {
    tenant: Arc<str>,
    subject: Arc<str>,
    scopes: BTreeSet<Scope>,
    agents: Option<BTreeSet<String>>,
    limits: CallerLimits,
    tenant_limits: TenantLimits,
    webhook: Option<Arc<Webhook>>,
}

/// Limits of one caller. Unlimited by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct CallerLimits {
    /// Average requests per second, above 0; ten seconds' worth are allowed as a burst.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests_per_second: Option<f64>,
    /// Maximum number of active runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runs: Option<usize>,
    /// Maximum number of tokens per run, with all its descendants.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_per_run: Option<u64>,
    /// Maximum cost per run with all its descendants, in millionths of a dollar. Requires prices in
    /// the agent's budget.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_per_run: Option<u64>,
    /// Maximum cost of all runs per day (UTC), in millionths of a dollar, if the server [counts
    /// spending](crate::ServerBuilder::spending).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_per_day: Option<u64>,
    /// Like `cost_per_day`, per month.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_per_month: Option<u64>,
}

impl CallerLimits {
    /// Sets the average number of requests per second; ten seconds' worth are allowed as a burst.
    #[must_use]
    pub fn requests_per_second(mut self, rate: f64) -> Self {
        self.requests_per_second = Some(rate);
        self
    }

    /// Rejects limits that cannot be meant.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent::ErrorKind::Config) for a request rate that is not above 0.
    pub(crate) fn check(&self) -> agent::Result<()> {
        match self.requests_per_second {
            Some(rate) if !(rate.is_finite() && rate > 0.0) => Err(agent::Error::config(format!(
                "invalid 'requests_per_second' {rate}: it must be above 0; remove it for no limit, or remove the key to block its owner"
            ))),
            _ => Ok(()),
        }
    }
}

/// Spending limits that all keys of a tenant share. Unlimited by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct TenantLimits {
    /// Per day (UTC), in millionths of a dollar.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_per_day: Option<u64>,
    /// Per month (UTC), in millionths of a dollar.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_per_month: Option<u64>,
}

impl Caller {
    /// Creates a caller with all scopes of the tenant; [`Scope::Metrics`] is not included, since it
    /// covers all tenants.
    pub fn new(tenant: impl Into<Arc<str>>, subject: impl Into<Arc<str>>) -> Self {
        let scopes = Scope::ALL.into_iter().filter(|scope| *scope != Scope::Metrics).collect();
        Self {
            tenant: tenant.into(),
            subject: subject.into(),
            scopes,
            agents: None,
            limits: CallerLimits::default(),
            tenant_limits: TenantLimits::default(),
            webhook: None,
        }
    }

    /// Sets the scopes.
    #[must_use]
    pub fn scopes(mut self, scopes: impl IntoIterator<Item = Scope>) -> Self {
        self.scopes = scopes.into_iter().collect();
        self
    }

    /// Sets the accessible agents. Default: all.
    #[must_use]
    pub fn agents(mut self, agents: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.agents = Some(agents.into_iter().map(Into::into).collect());
        self
    }

    /// Sets the limits.
    #[must_use]
    pub fn limits(mut self, limits: CallerLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets the limits that all callers of the tenant share.
    #[must_use]
    pub fn tenant_limits(mut self, limits: TenantLimits) -> Self {
        self.tenant_limits = limits;
        self
    }

    /// Adds a webhook for all runs of the caller, if the server [supports
    /// them](crate::ServerBuilder::webhooks).
    #[must_use]
    pub fn webhook(mut self, webhook: Webhook) -> Self {
        self.webhook = Some(Arc::new(webhook));
        self
    }

    /// Returns the webhook of the caller's runs.
    pub(crate) fn told(&self) -> Option<&Webhook> {
        self.webhook.as_deref()
    }

    /// Returns the caller's limits.
    pub(crate) fn limited(&self) -> &CallerLimits {
        &self.limits
    }

    /// Returns the limits that all callers of the tenant share.
    pub(crate) fn tenant_limited(&self) -> &TenantLimits {
        &self.tenant_limits
    }

    /// Returns the tenant, whose sessions the caller sees.
    pub fn tenant(&self) -> &str {
        &self.tenant
    }

    /// Returns the subject: the name of a key, or a user.
    pub fn subject(&self) -> &str {
        &self.subject
    }

    /// True if the caller may use the agent.
    pub fn may_use(&self, agent: &str) -> bool {
        self.agents.as_ref().is_none_or(|agents| agents.contains(agent))
    }

    /// Returns the agents that a list is restricted to: the named one, or all that the caller may
    /// use. `None` means every agent.
    pub(crate) fn among(&self, named: Option<&str>) -> Option<Vec<String>> {
        match named {
            Some(agent) => Some(Some(agent.to_owned()).filter(|agent| self.may_use(agent)).into_iter().collect()),
            None => self.agents.as_ref().map(|agents| agents.iter().cloned().collect()),
        }
    }

    /// Checks that the caller has a scope.
    ///
    /// # Errors
    /// 403 with the missing scope.
    pub fn require(&self, scope: Scope) -> Result<(), ApiError> {
        if self.scopes.contains(&scope) {
            return Ok(());
        }
        Err(ApiError::forbidden(format!("this needs a key with the scope '{}'", scope.as_str())))
    }
}

impl<S: Sync> FromRequestParts<S> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let caller = parts.extensions.get::<Self>().cloned();
        caller.ok_or_else(|| ApiError::unauthenticated("authentication required: send 'Authorization: Bearer <key>'"))
    }
}
