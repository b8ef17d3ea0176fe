//! Profiles of servers with Ollama's API.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::Auth;

/// Profile of a server with Ollama's native chat API, and model options of each request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct OllamaProfile {
    /// Name of the provider: its own JSON is sent back only to a provider of the same name. In JSON
    /// it is the [`Provider`](crate::Provider)'s.
    #[serde(skip)]
    pub provider: String,
    /// URL of the server. A trailing `/v1` or `/api`, as other clients use it, is removed.
    pub base_url: String,
    /// Placement of the key. Default: as a bearer token, if there is one.
    pub auth: Auth,
    /// Time the model stays in memory after a call: a text such as `10m`, or seconds; -1 for ever.
    /// Default: the server's setting, usually five minutes.
    pub keep_alive: Option<Value>,
    /// Default model options of each request: `num_ctx`, which is its context window, `top_k`,
    /// `num_gpu`, ..
    pub options: Map<String, Value>,
    /// True if the server may drop the first messages of a conversation that exceeds the window, as
    /// servers do by default; otherwise such a call is a
    /// [`ContextOverflow`](agent_core::ErrorKind::ContextOverflow).
    pub truncate: Option<bool>,
}

impl OllamaProfile {
    /// Creates the profile of a server with its default settings.
    pub fn compatible(provider: impl Into<String>, base_url: impl Into<String>) -> Self {
        Self { provider: provider.into(), base_url: base_url.into(), ..Self::default() }
    }

    /// Returns the context window that the profile sends to the server.
    pub(crate) fn window(&self) -> Option<u64> {
        self.options.get("num_ctx")?.as_u64()
    }
}

/// Returns the URL of the server, from the URL of one of its APIs.
pub(crate) fn server(base_url: &str) -> &str {
    let base = base_url.trim_end_matches('/');
    base.strip_suffix("/v1").or_else(|| base.strip_suffix("/api")).unwrap_or(base)
}
