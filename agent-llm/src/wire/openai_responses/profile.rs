//! What differs between servers that speak Responses.

use serde::{Deserialize, Serialize};

/// What is particular to one server's Responses; part of its [`Profile`](crate::Profile).
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
    /// Whether the server is told to keep nothing (`store: false`), and asked to seal the model's reasoning into its answers
    /// (`include: ["reasoning.encrypted_content"]`). Default: true. False says nothing of either.
    pub stateless: bool,
    /// How the names of models begin that refuse to seal their reasoning, since they have none. Default: OpenAI's.
    pub unsealed: Vec<String>,
    /// Whether the arguments of calls must follow the schemas of their tools word for word; the server refuses schemas that
    /// have an optional field. Default: false.
    pub strict_tools: bool,
    /// Which summary of its reasoning the model is asked for: `auto`, `concise` or `detailed`. Default: none.
    pub reasoning_summary: Option<String>,
    /// Whether the server refuses requests without `instructions`, be they empty. Default: false.
    pub needs_instructions: bool,
    /// Whether the server answers only by streams. Default: false.
    pub always_stream: bool,
    /// Whether it says what came of its own tools if it is asked to. Default: false.
    pub tool_results: bool,
    /// Fields that the server refuses: they are not sent for [`ModelParams`](agent_core::ModelParams), except for what is in
    /// its `extra`. Default: none.
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
    /// True if `model` is asked to seal its reasoning. Routers put the maker's name before the model's.
    pub(super) fn seals(&self, model: &str) -> bool {
        let name = model.rsplit('/').next().unwrap_or(model);
        self.stateless && !self.unsealed.iter().any(|start| name.starts_with(start))
    }

    /// True if the server takes this field.
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
