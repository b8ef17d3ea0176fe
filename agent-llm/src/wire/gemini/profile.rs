//! What differs between servers that speak Gemini's generateContent.

use serde::{Deserialize, Serialize};

use crate::Auth;

/// What is particular to one server that speaks Gemini's `generateContent`.
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
    /// Who serves the models. What a provider sent goes back, in its own JSON, only to a provider of the same name. It is no
    /// part of the JSON of a profile: there it is the name of the [`Provider`](crate::Provider).
    #[serde(skip)]
    pub provider: String,
    /// The address up to, and without, `/models/MODEL:generateContent`.
    pub base_url: String,
    /// How the key is shown.
    pub auth: Auth,
    /// The form of schemas: of tools' arguments and of answers.
    pub schemas: GeminiSchemas,
    /// What the model can be told. Default: what its name says.
    pub generation: Option<GeminiGeneration>,
    /// Whether an answer for which an [`Effort`](agent_core::model::Effort) is set shows its thoughts. Default: true.
    pub include_thoughts: bool,
    /// Whether domains may be excluded from its search, as Vertex AI lets one. Default: false.
    pub exclude_domains: bool,
}

/// The form of JSON Schemas.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum GeminiSchemas {
    /// As they are, in `parametersJsonSchema` and `responseJsonSchema`.
    #[default]
    JsonSchema,
    /// In the API's older form, a part of OpenAPI 3.0, in `parameters` and `responseSchema`. References are replaced by what
    /// they refer to; what a schema demands and the form cannot say is left out, so that more than the schema allows may
    /// come.
    OpenApi,
}

/// What models of a generation can be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum GeminiGeneration {
    /// Up to 2.5: an effort is a budget of tokens, and images and documents in a tool's result follow the results of the
    /// turn in a content of their own.
    Gemini2,
    /// From 3 on: an effort is a level, results hold images and documents, and calls that another model made are marked as
    /// such, since calls without a signature are refused.
    Gemini3,
}

impl GeminiGeneration {
    /// The generation of `model`, by its name. A model of unknown name is of the newest.
    pub(super) fn of(model: &str) -> Self {
        let older = ["gemini-1.", "gemini-2.", "gemma"];
        let name = model.rsplit('/').next().unwrap_or_default();
        if older.iter().any(|prefix| name.starts_with(prefix)) { Self::Gemini2 } else { Self::Gemini3 }
    }
}

impl Default for GeminiProfile {
    /// A [`compatible`](Self::compatible) server without a name or an address.
    fn default() -> Self {
        Self::compatible("", "")
    }
}

impl GeminiProfile {
    /// Any server: the key in `x-goog-api-key`.
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

    /// What `model` can be told.
    pub(super) fn generation_of(&self, model: &str) -> GeminiGeneration {
        self.generation.unwrap_or_else(|| GeminiGeneration::of(model))
    }

    /// True if `model` takes a schema of the answer beside functions. Older ones refuse the two together.
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
