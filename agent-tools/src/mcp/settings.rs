//! Settings of a client.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, OnceLock},
    time::Duration,
};

use agent_core::{Effect, Model, model::Backoff, tool::ToolHints};
use rmcp::model::Tool as RemoteTool;

use super::{Endpoint, OAuth, Protocol, endpoint::Kind, oauth::Access, protocol::Era, question::Answerer};
use crate::wildcard::fits;

/// Settings of a client.
pub(super) struct Settings {
    pub(super) name: Arc<str>,
    pub(super) endpoint: Endpoint,
    pub(super) prefix: String,
    pub(super) allowed: Vec<String>,
    pub(super) denied: Vec<String>,
    pub(super) timeout: Duration,
    pub(super) timeouts: BTreeMap<String, Duration>,
    pub(super) connect_timeout: Duration,
    pub(super) backoff: Backoff,
    pub(super) limit: usize,
    pub(super) required: bool,
    pub(super) trusts: bool,
    /// Digests of tools, by the server's own names.
    pub(super) pinned: BTreeMap<String, String>,
    pub(super) serial: bool,
    pub(super) checks_output: bool,
    pub(super) resource_tools: bool,
    /// True if elicitation suspends the run until a person answers.
    pub(super) asks: bool,
    /// Callback that answers elicitation immediately instead.
    pub(super) answers: Option<Arc<Answerer>>,
    pub(super) model: Option<Arc<dyn Model>>,
    /// Maximum of output tokens per sampling call.
    pub(super) sampled_tokens: Option<u64>,
    pub(super) roots: Vec<String>,
    pub(super) protocol: Protocol,
    pub(super) era: Era,
    /// Resource that must live as long as the client.
    #[cfg(feature = "plugins")]
    pub(super) keeps: Option<Arc<dyn std::any::Any + Send + Sync>>,
    /// OAuth access to the server, for all its connections.
    pub(super) access: OnceLock<Arc<Access>>,
}

/// Default maximum size of a message in bytes, enough for a list of many tools.
const MESSAGE: usize = 16 * 1024 * 1024;

impl Settings {
    pub(super) fn new(name: String, endpoint: Endpoint) -> Self {
        Self {
            prefix: format!("{name}_"),
            name: name.into(),
            endpoint,
            allowed: Vec::new(),
            denied: Vec::new(),
            timeout: Duration::from_secs(60),
            timeouts: BTreeMap::new(),
            connect_timeout: Duration::from_secs(30),
            backoff: Backoff::new().retries(u32::MAX).max_delay(Duration::from_secs(60)),
            limit: 1024 * 1024,
            required: false,
            trusts: false,
            pinned: BTreeMap::new(),
            serial: false,
            checks_output: true,
            resource_tools: false,
            asks: false,
            answers: None,
            model: None,
            sampled_tokens: None,
            roots: Vec::new(),
            protocol: Protocol::default(),
            era: Era::default(),
            #[cfg(feature = "plugins")]
            keeps: None,
            access: OnceLock::new(),
        }
    }

    /// Returns the maximum size of a message in bytes. JSON encoding enlarges a result, so the
    /// limit includes a margin.
    pub(super) fn message_limit(&self) -> usize {
        MESSAGE.max(self.limit.saturating_mul(2))
    }

    /// Returns the timeout for reaching the server, including the time for a user to authorise this
    /// client.
    pub(super) fn reach_timeout(&self) -> Duration {
        let oauth = if let Kind::Http(server) = &self.endpoint.0 { server.oauth.as_ref() } else { None };
        self.connect_timeout + oauth.map(OAuth::longest).unwrap_or_default()
    }

    /// Returns true if the server may ask people.
    pub(super) fn may_ask_people(&self) -> bool {
        self.asks || self.answers.is_some()
    }

    /// Returns true if the server may send requests during a call.
    pub(super) fn may_ask(&self) -> bool {
        self.may_ask_people() || self.model.is_some()
    }

    /// Returns true if the server's tool of this name is on offer.
    pub(super) fn offers(&self, tool: &str) -> bool {
        let named = |patterns: &[String]| patterns.iter().any(|pattern| fits(pattern, tool));
        (self.allowed.is_empty() || named(&self.allowed)) && !named(&self.denied)
    }

    /// Returns the timeout of calls of the server's tool of this name.
    pub(super) fn timeout_of(&self, tool: &str) -> Duration {
        self.timeouts.get(tool).copied().unwrap_or(self.timeout)
    }

    /// Returns the effect of repeating a call, as far as the server's hints are trusted.
    pub(super) fn effect_of(&self, tool: &RemoteTool) -> Effect {
        match tool.annotations.as_ref().filter(|_| self.trusts) {
            Some(hints) if hints.read_only_hint == Some(true) => Effect::Pure,
            Some(hints) if hints.idempotent_hint == Some(true) => Effect::Idempotent,
            _ => Effect::AtMostOnce,
        }
    }

    /// Returns the hints on a call's side effects, as far as the server is trusted.
    pub(super) fn hints_of(&self, tool: &RemoteTool) -> ToolHints {
        let (mut hints, said) = (ToolHints::default(), tool.annotations.as_ref());
        // A server that is not trusted may make its tools riskier, and not safer.
        let believed = |hint: &bool| *hint || self.trusts;
        hints.destructive = said.and_then(|said| said.destructive_hint).filter(believed);
        hints.open_world = said.and_then(|said| said.open_world_hint).filter(believed);
        hints
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings").field("name", &self.name).field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}
