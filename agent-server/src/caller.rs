//! Who asks.

use std::{collections::BTreeSet, sync::Arc};

use axum::extract::FromRequestParts;
use http::{HeaderMap, request::Parts};
use serde::{Deserialize, Serialize};

use crate::{error::ApiError, webhooks::Webhook};

/// What a caller may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Scope {
    /// Look at agents, runs, questions and sessions.
    Read,
    /// Start runs, steer, pause, cancel and go on with them; upload files; fork, undo, title and replay.
    Run,
    /// Answer questions.
    Answer,
    /// Delete sessions.
    Delete,
    /// Read the metrics, which are of all tenants.
    Metrics,
}

impl Scope {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Read, Self::Run, Self::Answer, Self::Delete, Self::Metrics];

    /// As a file of keys says it.
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

/// Who asks: a tenant, whose sessions are apart from those of all others, and somebody of that tenant.
///
/// A handler takes it as an extractor. A layer of your own, around [`Server::router`](crate::Server::router), puts it into the
/// request's extensions; what is there is believed, and keys are not asked for.
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
    traceparent: Option<Arc<str>>,
}

/// What one caller may use. Nothing is limited by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct CallerLimits {
    /// Requests a second, on average; ten seconds' worth may come at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests_per_second: Option<f64>,
    /// Runs under way at a time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runs: Option<usize>,
    /// Tokens that one run may use, with all its descendants.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_per_run: Option<u64>,
    /// What one run may cost, with all its descendants, in millionths of a dollar. The agent's budget needs prices for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_per_run: Option<u64>,
    /// What all runs of a day of UTC may cost, in millionths of a dollar, if the server [counts that](crate::ServerBuilder::spending).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_per_day: Option<u64>,
    /// As `cost_per_day`, of a month.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_per_month: Option<u64>,
}

/// What all keys of a tenant may spend together. Nothing is limited by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct TenantLimits {
    /// In a day of UTC, in millionths of a dollar.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_per_day: Option<u64>,
    /// In a month of UTC, in millionths of a dollar.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_per_month: Option<u64>,
}

impl Caller {
    /// Somebody of a tenant, who may do everything there; [`Scope::Metrics`], which is about all tenants, is not part of it.
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
            traceparent: None,
        }
    }

    /// Sets what the caller may do.
    #[must_use]
    pub fn scopes(mut self, scopes: impl IntoIterator<Item = Scope>) -> Self {
        self.scopes = scopes.into_iter().collect();
        self
    }

    /// Sets which agents there are for the caller. Default: all.
    #[must_use]
    pub fn agents(mut self, agents: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.agents = Some(agents.into_iter().map(Into::into).collect());
        self
    }

    /// Sets what the caller may use.
    #[must_use]
    pub fn limits(mut self, limits: CallerLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets what all callers of the tenant may use together.
    #[must_use]
    pub fn tenant_limits(mut self, limits: TenantLimits) -> Self {
        self.tenant_limits = limits;
        self
    }

    /// Has a program elsewhere told of every run of the caller's, if the server [does that](crate::ServerBuilder::webhooks).
    #[must_use]
    pub fn webhook(mut self, webhook: Webhook) -> Self {
        self.webhook = Some(Arc::new(webhook));
        self
    }

    /// The trace that the caller's request belongs to.
    pub(crate) fn traceparent(&self) -> Option<Arc<str>> {
        self.traceparent.clone()
    }

    /// Who is told of the caller's runs.
    pub(crate) fn told(&self) -> Option<&Webhook> {
        self.webhook.as_deref()
    }

    /// What the caller may use.
    pub(crate) fn limited(&self) -> &CallerLimits {
        &self.limits
    }

    /// What all callers of the tenant may use together.
    pub(crate) fn tenant_limited(&self) -> &TenantLimits {
        &self.tenant_limits
    }

    /// Whose sessions the caller sees.
    pub fn tenant(&self) -> &str {
        &self.tenant
    }

    /// Who it is: a key's name, a user.
    pub fn subject(&self) -> &str {
        &self.subject
    }

    /// True if the agent is there for the caller.
    pub fn may_use(&self, agent: &str) -> bool {
        self.agents.as_ref().is_none_or(|agents| agents.contains(agent))
    }

    /// The agents among which those of a list are: the named one, or all that are there for the caller. None is every agent.
    pub(crate) fn among(&self, named: Option<&str>) -> Option<Vec<String>> {
        match named {
            Some(agent) => Some(Some(agent.to_owned()).filter(|agent| self.may_use(agent)).into_iter().collect()),
            None => self.agents.as_ref().map(|agents| agents.iter().cloned().collect()),
        }
    }

    /// Checks what the caller may do.
    ///
    /// # Errors
    /// 403 with the scope that lacks.
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
        let mut caller =
            caller.ok_or_else(|| ApiError::unauthenticated("say who you are: 'Authorization: Bearer KEY'"))?;
        caller.traceparent = traceparent(&parts.headers);
        Ok(caller)
    }
}

/// What a request says of the trace that it belongs to. What is too long to be that is passed over.
fn traceparent(headers: &HeaderMap) -> Option<Arc<str>> {
    const MOST: usize = 256;
    headers.get("traceparent")?.to_str().ok().filter(|value| value.len() <= MOST).map(Into::into)
}
