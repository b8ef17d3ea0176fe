//! Abilities of Claude models by name, on any platform.

use agent_core::{EventKind, ModelParams, ModelRequest, Result, ToolChoice, model::Effort};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::server_tools::{NO_NUMBER, refusal};

/// Form of a model's thinking parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ClaudeThinking {
    /// By effort: the model decides when and how long. Claude 4.6 and later, and unknown models.
    Adaptive,
    /// By a token budget, which is part of the output limit. Models before Claude 4.6.
    Budget,
}

/// Ways to disable thinking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Thoughtless {
    /// Off by default.
    ByDefault,
    /// On by default; must be disabled explicitly.
    WhenTold,
    /// Always on; the lowest effort minimises it.
    Never,
}

/// Default output limit: mandatory in a request, and supported by every Claude since 3.7.
pub(crate) const MAX_TOKENS: u64 = 32_000;

/// Output limit of older models.
const MAX_TOKENS_BEFORE_3_7: u64 = 4_096;

/// Minimum thinking budget accepted by the API.
const LEAST_BUDGET: u64 = 1_024;

/// Minimum `top_p` accepted by the API for a model that thinks.
const LEAST_TOP_P: f64 = 0.95;

/// Abilities of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Claude {
    pub(crate) thinking: ClaudeThinking,
    thoughtless: Thoughtless,
    /// Default output limit.
    pub(crate) max_tokens: u64,
    /// True for models trained on the older computer-use tool.
    is_new_to_computers: bool,
}

impl Claude {
    /// Returns the abilities of a model by name, which may have a platform's prefix or suffix.
    pub(crate) fn of(model: &str) -> Self {
        let version = version(model);
        let is_older = |than| version.is_some_and(|version| version < than);
        let is = |family| model.contains(family);
        Self {
            thinking: if is_older((4, 6)) { ClaudeThinking::Budget } else { ClaudeThinking::Adaptive },
            thoughtless: match version {
                _ if is("fable") || is("mythos") => Thoughtless::Never,
                None => Thoughtless::ByDefault,
                Some(version) if version < (5, 0) => Thoughtless::ByDefault,
                Some(version) if version < (5, 5) || is("haiku") => Thoughtless::WhenTold,
                Some(_) => Thoughtless::Never,
            },
            max_tokens: if is_older((3, 7)) { MAX_TOKENS_BEFORE_3_7 } else { MAX_TOKENS },
            is_new_to_computers: is_older((4, 5)) || (is_older((4, 6)) && !is("opus")),
        }
    }

    /// Returns the fields that control thinking: `thinking`, and an effort in `output_config`.
    /// Thinking is disabled if a tool is forced, because the API accepts only one of the two.
    ///
    /// # Errors
    /// [`InvalidRequest`](agent_core::ErrorKind::InvalidRequest) for combinations that the API
    /// rejects: a thinking budget below 1,024 tokens or not below the output limit, a budget for a
    /// model that takes an effort, or thinking with a temperature but 1 or a `top_p` below 0.95.
    pub(crate) fn thinking(&self, params: &ModelParams, has_tools: bool) -> Result<Map<String, Value>> {
        let max_tokens = params.max_tokens.unwrap_or(self.max_tokens);
        let (mut thinking, effort) = match (params.thinking_tokens, self.thinking) {
            (Some(_), ClaudeThinking::Adaptive) => return Err(refusal(NO_NUMBER)),
            (Some(0), _) => (Some(json!({"type": "disabled"})), None),
            (Some(most), _) => (Some(budget(most)), None),
            (None, _) => params.effort.map_or((None, None), |effort| self.think(effort, max_tokens)),
        };
        if has_tools && is_forced(params) {
            thinking = thinking.filter(|told| told["type"] == "disabled");
        }
        if let Some(told) = &thinking {
            check(told, params, max_tokens)?;
        }
        let thinking = thinking.map(|thinking| ("thinking".to_owned(), thinking));
        let effort = effort.map(|effort| ("output_config".to_owned(), json!({"effort": effort})));
        Ok(thinking.into_iter().chain(effort).collect())
    }

    fn think(&self, effort: Effort, max_tokens: u64) -> (Option<Value>, Option<&'static str>) {
        match (effort, self.thoughtless, self.thinking) {
            (Effort::None, Thoughtless::ByDefault, _) => (None, None),
            (Effort::None, Thoughtless::WhenTold, _) => (Some(json!({"type": "disabled"})), None),
            (Effort::None, Thoughtless::Never, _) => (None, Some("low")),
            (_, _, ClaudeThinking::Adaptive) => (Some(json!({"type": "adaptive"})), Some(word(effort))),
            (_, _, ClaudeThinking::Budget) => (share(effort, max_tokens).map(budget), None),
        }
    }

    /// Returns the type of the computer-use tool, and the beta feature that it requires.
    pub(super) fn computer(&self) -> (&'static str, &'static str) {
        if self.is_new_to_computers {
            ("computer_20250124", "computer-use-2025-01-24")
        } else {
            ("computer_20251124", "computer-use-2025-11-24")
        }
    }
}

fn budget(tokens: u64) -> Value {
    json!({"type": "enabled", "budget_tokens": tokens})
}

/// Returns a share of the output limit as thinking budget, at least the minimum; `None` if the
/// output limit is below twice the minimum.
fn share(effort: Effort, max_tokens: u64) -> Option<u64> {
    let share = match effort {
        Effort::None | Effort::Minimal => 0,
        Effort::Low => max_tokens / 8,
        Effort::Medium => max_tokens / 4,
        Effort::XHigh => max_tokens / 4 * 3,
        Effort::Max => max_tokens / 8 * 7,
        _ => max_tokens / 2,
    };
    (max_tokens >= 2 * LEAST_BUDGET).then_some(share.max(LEAST_BUDGET))
}

/// Returns the API's name of an effort.
pub(crate) fn word(effort: Effort) -> &'static str {
    match effort {
        Effort::None | Effort::Minimal | Effort::Low => "low",
        Effort::Medium => "medium",
        Effort::XHigh => "xhigh",
        Effort::Max => "max",
        _ => "high",
    }
}

/// Checks that the API accepts this thinking together with the other settings.
fn check(thinking: &Value, params: &ModelParams, max_tokens: u64) -> Result<()> {
    let budget = thinking["budget_tokens"].as_u64();
    if budget.is_some_and(|budget| !(LEAST_BUDGET..max_tokens).contains(&budget)) {
        return Err(refusal("a model thinks 1,024 tokens at least, and less than `max_tokens`"));
    }
    let is_own = params.temperature.is_some_and(|t| t != 1.0) || params.top_p.is_some_and(|p| p < LEAST_TOP_P);
    if is_own && thinking["type"] != "disabled" {
        return Err(refusal(
            "a model that thinks takes no temperature but 1 and no top_p below 0.95: leave them out, or the effort",
        ));
    }
    Ok(())
}

fn is_forced(params: &ModelParams) -> bool {
    matches!(params.tool_choice, Some(ToolChoice::Required | ToolChoice::Tool(_)))
}

/// Emits a warning if the requested thinking is dropped because a tool is forced.
pub(crate) fn tell_if_thoughtless(req: &ModelRequest) {
    let is_to_think = match req.params.thinking_tokens {
        Some(most) => most > 0,
        None => req.params.effort.is_some_and(|effort| effort != Effort::None),
    };
    if is_to_think && !req.tools.is_empty() && is_forced(&req.params) {
        let message = "the model does not think in this call: a tool is forced on it, and its API forces none on a model that thinks";
        req.cx.emit(EventKind::Warning { message: message.into() });
    }
}

/// Parses the version in a name such as `claude-opus-4-6`, `claude-3-7-sonnet-20250219` or
/// `us.anthropic.claude-sonnet-5-v1:0`.
fn version(model: &str) -> Option<(u32, u32)> {
    let (_, name) = model.split_once("claude-")?;
    let words = name.split(['-', '.', '@', ':', '/']);
    // Dates have more digits, and revisions begin with a letter.
    let mut numbers = words.map(|word| word.parse().ok().filter(|number| *number < 100)).skip_while(Option::is_none);
    let major = numbers.next()??;
    Some((major, numbers.next().flatten().unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_read_before_or_after_the_family() {
        for (model, wanted) in [
            ("claude-3-haiku-20240307", Some((3, 0))),
            ("claude-3-7-sonnet-20250219", Some((3, 7))),
            ("claude-sonnet-4-20250514", Some((4, 0))),
            ("claude-opus-4-6", Some((4, 6))),
            ("anthropic/claude-sonnet-4.5", Some((4, 5))),
            ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", Some((4, 5))),
            ("claude-sonnet-5", Some((5, 0))),
            ("claude-opus-4@20250514", Some((4, 0))),
            ("claude-mythos-preview", None),
            ("deepseek-chat", None),
        ] {
            assert_eq!(version(model), wanted, "{model}");
        }
    }

    #[test]
    fn models_are_told_how_to_think_as_they_understand_it() {
        let told = |model| (Claude::of(model).thinking, Claude::of(model).thoughtless);
        assert_eq!(told("claude-haiku-4-5"), (ClaudeThinking::Budget, Thoughtless::ByDefault));
        assert_eq!(told("claude-opus-4-7"), (ClaudeThinking::Adaptive, Thoughtless::ByDefault));
        assert_eq!(told("claude-opus-5"), (ClaudeThinking::Adaptive, Thoughtless::WhenTold));
        assert_eq!(told("claude-opus-5-5"), (ClaudeThinking::Adaptive, Thoughtless::Never));
        assert_eq!(told("claude-fable-5"), (ClaudeThinking::Adaptive, Thoughtless::Never));
        assert_eq!(told("claude-mythos-preview"), (ClaudeThinking::Adaptive, Thoughtless::Never));
        assert_eq!(told("kimi-k2"), (ClaudeThinking::Adaptive, Thoughtless::ByDefault));
        assert_eq!(Claude::of("claude-3-haiku-20240307").max_tokens, MAX_TOKENS_BEFORE_3_7);
        assert_eq!(Claude::of("a-model-of-ours").max_tokens, MAX_TOKENS);
    }

    #[test]
    fn a_budget_is_what_the_api_takes_and_no_less() {
        let told = |tokens| {
            let params = ModelParams::default().thinking_tokens(tokens).max_tokens(4_000);
            Claude::of("claude-haiku-4-5").thinking(&params, false)
        };
        for taken in [1_024, 3_999] {
            assert_eq!(told(taken).expect("the API takes it")["thinking"]["budget_tokens"], taken);
        }
        for refused in [1_023, 4_000] {
            assert!(told(refused).is_err(), "{refused}");
        }
        assert_eq!(told(0).expect("no thinking")["thinking"], json!({"type": "disabled"}));
    }
}
