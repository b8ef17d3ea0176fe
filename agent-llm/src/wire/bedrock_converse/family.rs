//! Thinking parameters, which differ between vendors.

use agent_core::{ModelParams, Result, model::Effort};
use serde_json::{Map, Value, json};

use crate::wire::{
    claude::Claude,
    server_tools::{check_no_count, refusal},
};

/// Thinking parameters of models, by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    Claude(Claude),
    /// Amazon's Nova, version 2 and later.
    Nova,
    /// Alibaba's Qwen.
    Qwen,
    /// OpenAI's models, and others with the same parameter.
    OpenAi,
    /// No known parameter.
    Silent,
}

impl Family {
    /// Returns the family of a model by name or ARN.
    pub(super) fn of(model: &str) -> Self {
        let is = |family| model.contains(family);
        match () {
            () if is("claude") => Self::Claude(Claude::of(model)),
            () if is("nova-2") => Self::Nova,
            () if is("qwen") => Self::Qwen,
            () if is("gpt-oss") || is("openai.") => Self::OpenAi,
            () => Self::Silent,
        }
    }

    /// Returns the fields that control thinking.
    ///
    /// # Errors
    /// [`InvalidRequest`](agent_core::ErrorKind::InvalidRequest) if the model has no such
    /// parameter.
    pub(super) fn thinking(&self, params: &ModelParams, has_tools: bool) -> Result<Map<String, Value>> {
        if let Self::Claude(claude) = self {
            return claude.thinking(params, has_tools);
        }
        check_no_count(params)?;
        let Some(effort) = params.effort else { return Ok(Map::new()) };
        let word = match effort {
            Effort::None | Effort::Minimal | Effort::Low => "low",
            Effort::Medium => "medium",
            _ => "high",
        };
        let (name, told) = match (self, effort) {
            (Self::OpenAi, _) => ("reasoning_effort", word.into()),
            (_, Effort::None) => return Ok(Map::new()),
            (Self::Nova, _) => ("reasoningConfig", json!({"type": "enabled", "maxReasoningEffort": word})),
            (Self::Qwen, _) => ("reasoning_config", word.into()),
            (Self::Claude(_) | Self::Silent, _) => {
                return Err(refusal(
                    "no field is known that tells this model how much to think: leave the effort out, or say it in \
                     `extra`, under `additionalModelRequestFields`",
                ));
            }
        };
        Ok(Map::from_iter([(name.to_owned(), told)]))
    }
}

#[cfg(test)]
mod tests {
    use agent_core::ErrorKind;

    use super::*;

    #[test]
    fn each_family_is_told_in_its_own_words() {
        let told = |model: &str, effort| {
            let params = ModelParams::default().effort(effort).max_tokens(8_000);
            Family::of(model).thinking(&params, false).map(Value::Object)
        };
        let is = |model, effort, wanted| assert_eq!(told(model, effort).expect("a word"), wanted, "{model}");
        is(
            "us.amazon.nova-2-lite-v1:0",
            Effort::Low,
            json!({"reasoningConfig": {"type": "enabled", "maxReasoningEffort": "low"}}),
        );
        is("openai.gpt-oss-120b-1:0", Effort::High, json!({"reasoning_effort": "high"}));
        is("qwen.qwen3-32b-v1:0", Effort::Medium, json!({"reasoning_config": "medium"}));
        let budget = json!({"thinking": {"type": "enabled", "budget_tokens": 2_000}});
        is("us.anthropic.claude-sonnet-4-20250514-v1:0", Effort::Medium, budget);
        let adaptive = json!({"thinking": {"type": "adaptive"}, "output_config": {"effort": "high"}});
        is("arn:aws:bedrock:us-east-1:1:inference-profile/us.anthropic.claude-opus-4-6-v1", Effort::High, adaptive);
        is("amazon.titan-text-express-v1", Effort::None, json!({}));
        let error = told("amazon.nova-lite-v1:0", Effort::High).expect_err("it does not think");
        assert_eq!(error.kind(), ErrorKind::InvalidRequest);
    }
}
