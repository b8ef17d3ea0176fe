//! What differs between servers that speak Cohere's wire.

use serde::{Deserialize, Serialize};

use crate::Auth;

/// What is particular to one server that speaks Cohere's Chat, version 2.
///
/// ```
/// use agent_llm::CohereProfile;
///
/// let own = CohereProfile::compatible("acme", "https://cohere.acme.example/v2");
/// assert_eq!(own.provider, "acme");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct CohereProfile {
    /// Who serves the models. What a provider sent goes back, in its own JSON, only to a provider of the same name. It is no
    /// part of the JSON of a profile: there it is the name of the [`Provider`](crate::Provider).
    #[serde(skip)]
    pub provider: String,
    /// The address up to, and without, `/chat`.
    pub base_url: String,
    /// How the key is shown.
    pub auth: Auth,
}

impl CohereProfile {
    /// Any server: a bearer token.
    pub fn compatible(provider: impl Into<String>, base_url: impl Into<String>) -> Self {
        Self { provider: provider.into(), base_url: base_url.into(), auth: Auth::Bearer }
    }
}
