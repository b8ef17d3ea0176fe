//! What differs between servers that speak Ollama's wire.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::Auth;

/// What is particular to one server that speaks Ollama's own chat, and what each request tells it of the model.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct OllamaProfile {
    /// Who serves the models: what a provider sent goes back to one of this name. In JSON it is the [`Provider`](crate::Provider)'s.
    #[serde(skip)]
    pub provider: String,
    /// The server's address. A `/v1` or `/api` at its end, as other clients have it, is left out.
    pub base_url: String,
    /// How the key is shown. Default: as a bearer token, if there is one.
    pub auth: Auth,
    /// How long the model stays in memory after a call: a text such as `10m`, or seconds; -1 for ever. Default: as the server
    /// is set, which is five minutes.
    pub keep_alive: Option<Value>,
    /// What each request that says nothing else says of the model: `num_ctx`, which is its window, `top_k`, `num_gpu`, ..
    pub options: Map<String, Value>,
    /// Whether the first messages of a conversation that is longer than the window may be left out, as servers do if nothing
    /// is said; else such a call is a [`ContextOverflow`](agent_core::ErrorKind::ContextOverflow).
    pub truncate: Option<bool>,
}

impl OllamaProfile {
    /// Any server, as it is set.
    pub fn compatible(provider: impl Into<String>, base_url: impl Into<String>) -> Self {
        Self { provider: provider.into(), base_url: base_url.into(), ..Self::default() }
    }

    /// The context window that the server is told of.
    pub(crate) fn window(&self) -> Option<u64> {
        self.options.get("num_ctx")?.as_u64()
    }
}

/// The address of a server, of that of one of its APIs.
pub(crate) fn server(base_url: &str) -> &str {
    let base = base_url.trim_end_matches('/');
    base.strip_suffix("/v1").or_else(|| base.strip_suffix("/api")).unwrap_or(base)
}
