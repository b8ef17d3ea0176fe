//! How models are told how much to think: each maker's fields are of its own.

use agent_core::{Error, ErrorKind, Result, Retry, model::Effort};
use serde_json::{Map, Value, json};

use crate::wire::{
    anthropic::{Claude, thinking},
    server_tools::{NO_NUMBER, refusal},
};

/// What models understand of thinking, by their names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    Claude(Claude),
    /// Amazon's Nova from its second version on.
    Nova,
    /// Alibaba's Qwen.
    Qwen,
    /// OpenAI's models, and those of others that took over its word.
    OpenAi,
    /// No word is known.
    Silent,
}

impl Family {
    /// The family of the model of this name, which may be an address with it.
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

    /// The fields that ask for `effort`, in an answer of at most `max_tokens`.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidRequest`] if the model has no word for it.
    pub(super) fn fields(&self, effort: Effort, max_tokens: Option<u64>) -> Result<Map<String, Value>> {
        let word = match effort {
            Effort::None | Effort::Minimal | Effort::Low => "low",
            Effort::Medium => "medium",
            _ => "high",
        };
        let fields = match (self, effort) {
            (Self::Claude(claude), _) => return Ok(thinking(effort, max_tokens, claude)),
            (Self::Silent | Self::Nova | Self::Qwen, Effort::None) => json!({}),
            (Self::Nova, _) => json!({"reasoningConfig": {"type": "enabled", "maxReasoningEffort": word}}),
            (Self::Qwen, _) => json!({"reasoning_config": word}),
            (Self::OpenAi, _) => json!({"reasoning_effort": word}),
            (Self::Silent, _) => {
                let message = "no field is known that tells this model how much to think: leave the effort out, or say \
                               it in `extra`, under `additionalModelRequestFields`";
                return Err(Error::new(ErrorKind::InvalidRequest, message).with_retry(Retry::Permanent));
            }
        };
        Ok(if let Value::Object(fields) = fields { fields } else { Map::new() })
    }

    /// The fields that let the model think this many tokens.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidRequest`] if the model is not told a number.
    pub(super) fn counted(&self, most: u64) -> Result<Map<String, Value>> {
        let told = match self {
            Self::Claude(claude) if claude.is_told_a_number() => match most {
                0 => json!({"type": "disabled"}),
                most => json!({"type": "enabled", "budget_tokens": most}),
            },
            _ => return Err(refusal(NO_NUMBER)),
        };
        Ok(Map::from_iter([("thinking".to_owned(), told)]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_family_is_told_in_its_own_words() {
        let told = |model: &str, effort| Family::of(model).fields(effort, Some(8_000)).map(Value::Object);
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
