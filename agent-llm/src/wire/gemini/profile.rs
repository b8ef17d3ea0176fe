//! Profiles of servers with Gemini's API.

use serde::{Deserialize, Serialize};

use crate::Auth;

/// Profile of a server with Gemini's `generateContent`.
///
/// ```
/// use agent_llm::GeminiProfile;
///
/// let own = GeminiProfile::compatible("acme", "https://llm.acme.example/v1beta");
/// assert_eq!(own.provider, "acme");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct GeminiProfile {
    /// Name of the provider. A provider's own JSON is sent back only to a provider of the same
    /// name. Not part of a profile's JSON: there it is the name of the
    /// [`Provider`](crate::Provider).
    #[serde(skip)]
    pub provider: String,
    /// Base URL, without `/models/MODEL:generateContent`.
    pub base_url: String,
    /// Placement of the key.
    pub auth: Auth,
    /// Schema dialect of tool arguments and answers.
    pub schemas: GeminiSchemas,
    /// Generation of the model. Default: by its name.
    pub generation: Option<GeminiGeneration>,
    /// True to include thoughts in answers with an [`Effort`](agent_core::model::Effort). Default:
    /// true.
    pub include_thoughts: bool,
    /// True if its web search can exclude domains, as on Vertex AI. Default: false.
    pub exclude_domains: bool,
}

/// Dialect of JSON Schemas.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum GeminiSchemas {
    /// JSON Schema, in `parametersJsonSchema` and `responseJsonSchema`.
    #[default]
    JsonSchema,
    /// The API's older dialect, a subset of OpenAPI 3.0, in `parameters` and `responseSchema`.
    /// References are inlined; constraints that the dialect does not support are removed, so that
    /// answers may violate the original schema.
    OpenApi,
}

/// Parameters of a model generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum GeminiGeneration {
    /// Up to 2.5: an effort is a token budget, and images and documents in tool results follow the
    /// results of the turn in a separate content.
    Gemini2,
    /// 3 and later: an effort is a level, results contain images and documents, and calls made by
    /// another model are marked as such, since calls without a signature are rejected.
    Gemini3,
}

impl GeminiGeneration {
    /// Returns the generation of `model`, by its name. Unknown models count as the newest
    /// generation.
    pub(super) fn of(model: &str) -> Self {
        let older = ["gemini-1.", "gemini-2.", "gemma"];
        let name = model.rsplit('/').next().unwrap_or_default();
        if older.iter().any(|prefix| name.starts_with(prefix)) { Self::Gemini2 } else { Self::Gemini3 }
    }
}

impl Default for GeminiProfile {
    /// A [`compatible`](Self::compatible) server without a name or a URL.
    fn default() -> Self {
        Self::compatible("", "")
    }
}

impl GeminiProfile {
    /// Creates the profile of a compatible server: the key in `x-goog-api-key`.
    pub fn compatible(provider: impl Into<String>, base_url: impl Into<String>) -> Self {
        Self {
            provider: provider.into(),
            base_url: base_url.into(),
            auth: Auth::Header("x-goog-api-key".into()),
            schemas: GeminiSchemas::default(),
            generation: None,
            include_thoughts: true,
            exclude_domains: false,
        }
    }

    /// Returns the generation of `model`.
    pub(super) fn generation_of(&self, model: &str) -> GeminiGeneration {
        self.generation.unwrap_or_else(|| GeminiGeneration::of(model))
    }

    /// Returns true if `model` supports an answer schema together with functions. Older ones reject
    /// that.
    pub(crate) fn holds_to_schemas(&self, model: &str) -> bool {
        self.generation_of(model) == GeminiGeneration::Gemini3
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generation_is_known_by_the_models_name() {
        for model in ["gemini-2.5-flash", "gemini-1.5-pro", "models/gemini-2.0-flash", "gemma-3-27b-it"] {
            assert_eq!(GeminiGeneration::of(model), GeminiGeneration::Gemini2, "{model}");
        }
        for model in ["gemini-3-pro-preview", "gemini-flash-latest", "gemini-10", "publishers/acme/models/own"] {
            assert_eq!(GeminiGeneration::of(model), GeminiGeneration::Gemini3, "{model}");
        }
    }
}
