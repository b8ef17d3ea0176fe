//! Profiles of servers with the Responses API.

use serde::{Deserialize, Serialize};

/// Responses settings of a server, as part of its [`Profile`](crate::Profile).
///
/// ```
/// use agent_llm::Profile;
///
/// let mut profile = Profile::openai();
/// profile.responses.stateless = false; // the server keeps answers, and reasoning, for 30 days
/// profile.responses.reasoning_summary = Some("auto".into());
/// assert!(Profile::named("chatgpt")?.responses.always_stream);
/// # Ok::<(), agent_core::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct ResponsesProfile {
    /// True to make the server store nothing (`store: false`), and return the model's reasoning
    /// encrypted (`include: ["reasoning.encrypted_content"]`). Default: true. False sends neither
    /// field.
    pub stateless: bool,
    /// Prefixes of the names of models without encrypted reasoning, which reject that request.
    /// Default: OpenAI's.
    pub unsealed: Vec<String>,
    /// True if arguments must follow the tools' schemas strictly; the server then rejects schemas
    /// with optional fields. Default: false.
    pub strict_tools: bool,
    /// Requested summary of the reasoning: `auto`, `concise` or `detailed`. Default: none.
    pub reasoning_summary: Option<String>,
    /// True if the server rejects requests without `instructions`, even empty ones. Default: false.
    pub needs_instructions: bool,
    /// True if the server only supports streaming. Default: false.
    pub always_stream: bool,
    /// True if the server can return the results of its provider-side tools. Default: false.
    pub tool_results: bool,
    /// Fields that the server rejects: they are not sent for
    /// [`ModelParams`](agent_core::ModelParams), except those in its `extra`. Default: none.
    pub refused: Vec<String>,
}

impl Default for ResponsesProfile {
    fn default() -> Self {
        Self {
            stateless: true,
            unsealed: ["gpt-3.5", "gpt-4", "gpt-5-chat", "chatgpt-"].map(str::to_owned).into(),
            strict_tools: false,
            reasoning_summary: None,
            needs_instructions: false,
            always_stream: false,
            tool_results: false,
            refused: Vec::new(),
        }
    }
}

impl ResponsesProfile {
    /// Returns true if encrypted reasoning is requested from `model`. Routers prefix the model's
    /// name with the vendor's.
    pub(super) fn seals(&self, model: &str) -> bool {
        let name = model.rsplit('/').next().unwrap_or(model);
        self.stateless && !self.unsealed.iter().any(|start| name.starts_with(start))
    }

    /// Returns true if the server accepts this field.
    pub(super) fn takes(&self, field: &str) -> bool {
        !self.refused.iter().any(|refused| refused == field)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_that_do_not_reason_are_not_asked_to_seal_it() {
        let profile = ResponsesProfile::default();
        for (model, seals) in [("gpt-5", true), ("o3", true), ("gpt-4o-mini", false), ("openai/gpt-4.1", false)] {
            assert_eq!(profile.seals(model), seals, "{model}");
        }
        assert!(!ResponsesProfile { stateless: false, ..profile }.seals("gpt-5"));
    }
}
