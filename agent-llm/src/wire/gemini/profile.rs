//! What differs between servers that speak Gemini's generateContent.

use serde::{Deserialize, Serialize};

use crate::Auth;

/// What is particular to one server that speaks Gemini's `generateContent`.
///
/// ```
/// use agent_llm::GeminiProfile;
///
/// let vertex = GeminiProfile::vertex("my-project", "europe-west4");
/// assert!(vertex.base_url.ends_with("/projects/my-project/locations/europe-west4/publishers/google"));
/// let own = GeminiProfile::compatible("acme", "https://llm.acme.example/v1beta");
/// assert_eq!(own.provider, "acme");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct GeminiProfile {
    /// Who serves the models. What a provider sent goes back, in its own JSON, only to a provider of the same name.
    pub provider: String,
    /// The address up to, and without, `/models/MODEL:generateContent`.
    pub base_url: String,
    /// The environment variable that holds the key.
    pub key_variable: String,
    /// How the key is shown.
    pub auth: Auth,
    /// The form of schemas: of tools' arguments and of answers.
    pub schemas: GeminiSchemas,
    /// What the model can be told. Default: what its name says.
    pub generation: Option<GeminiGeneration>,
    /// Whether an answer for which an [`Effort`](agent_core::model::Effort) is set shows its thoughts. Default: true.
    pub include_thoughts: bool,
}

/// The form of JSON Schemas.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
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
    /// [`GeminiProfile::ai_studio`].
    fn default() -> Self {
        Self::ai_studio()
    }
}

impl GeminiProfile {
    /// Any server: the key in `GEMINI_API_KEY`, shown in `x-goog-api-key`.
    pub fn compatible(provider: impl Into<String>, base_url: impl Into<String>) -> Self {
        Self {
            provider: provider.into(),
            base_url: base_url.into(),
            key_variable: "GEMINI_API_KEY".into(),
            auth: Auth::Header("x-goog-api-key".into()),
            schemas: GeminiSchemas::default(),
            generation: None,
            include_thoughts: true,
        }
    }

    /// The Gemini API with keys of AI Studio.
    pub fn ai_studio() -> Self {
        Self::compatible("gemini", "https://generativelanguage.googleapis.com/v1beta")
    }

    /// Vertex AI; `location` is a region, such as `europe-west4`, or `global`. The key is an OAuth access token.
    pub fn vertex(project: &str, location: &str) -> Self {
        let host = match location {
            "global" => "aiplatform.googleapis.com".to_owned(),
            region => format!("{region}-aiplatform.googleapis.com"),
        };
        let base_url = format!("https://{host}/v1/projects/{project}/locations/{location}/publishers/google");
        Self {
            key_variable: "GOOGLE_OAUTH_ACCESS_TOKEN".into(),
            auth: Auth::Bearer,
            ..Self::compatible("vertex", base_url)
        }
    }

    /// What `model` can be told.
    pub(super) fn generation_of(&self, model: &str) -> GeminiGeneration {
        self.generation.unwrap_or_else(|| GeminiGeneration::of(model))
    }

    /// True if `model` takes a schema of the answer beside functions. Older ones refuse the two together.
    pub(super) fn holds_to_schemas(&self, model: &str) -> bool {
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

    #[test]
    fn what_a_configuration_leaves_out_is_as_with_ai_studio() {
        let json = r#"{"base_url": "http://gateway/v1beta", "generation": "gemini2", "schemas": "open_api"}"#;
        let profile: GeminiProfile = serde_json::from_str(json).expect("parses");
        assert_eq!(profile.generation, Some(GeminiGeneration::Gemini2));
        let (base_url, generation, schemas) = ("http://gateway/v1beta".into(), None, GeminiSchemas::JsonSchema);
        let rest = GeminiProfile { generation, schemas, ..profile };
        assert_eq!(rest, GeminiProfile { base_url, ..GeminiProfile::ai_studio() });
    }

    #[test]
    fn the_global_location_has_no_region_in_its_host() {
        let global = GeminiProfile::vertex("p", "global").base_url;
        assert_eq!(global, "https://aiplatform.googleapis.com/v1/projects/p/locations/global/publishers/google");
    }
}
