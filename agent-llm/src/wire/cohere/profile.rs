//! Profiles of servers with Cohere's API.

use serde::{Deserialize, Serialize};

use crate::Auth;

/// Profile of a server with Cohere's Chat API, version 2.
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
    /// Name of the provider. A provider's own JSON is sent back only to a provider of the same
    /// name. Not part of a profile's JSON: there it is the name of the
    /// [`Provider`](crate::Provider).
    #[serde(skip)]
    pub provider: String,
    /// Base URL, without `/chat`.
    pub base_url: String,
    /// Placement of the key.
    pub auth: Auth,
}

impl CohereProfile {
    /// Creates the profile of a compatible server, with a bearer token.
    pub fn compatible(provider: impl Into<String>, base_url: impl Into<String>) -> Self {
        Self { provider: provider.into(), base_url: base_url.into(), auth: Auth::Bearer }
    }
}
