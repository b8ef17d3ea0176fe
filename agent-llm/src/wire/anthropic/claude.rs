//! What a model can be told, by its name.

use serde::{Deserialize, Serialize};

/// How a model is told how much to think.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ClaudeThinking {
    /// By effort: the model decides when and how long. Claude 4.6 and later; what is assumed of unknown models.
    Adaptive,
    /// By a budget of tokens, which is a part of the answer's limit. Models before Claude 4.6.
    Budget,
}

/// How a model is told not to think.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Thoughtless {
    /// It does not think unless it is told to.
    ByDefault,
    /// It thinks unless it is told not to.
    WhenTold,
    /// It always thinks: with the least effort, it thinks the least.
    Never,
}

/// The most tokens of an answer if nobody says: mandatory in a request, and what every Claude since 3.7 can give.
pub(crate) const MAX_TOKENS: u64 = 32_000;

/// What older models can give.
const MAX_TOKENS_BEFORE_3_7: u64 = 4_096;

/// The traits of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Claude {
    pub(super) thinking: ClaudeThinking,
    pub(super) thoughtless: Thoughtless,
    pub(super) max_tokens: u64,
    /// It was taught an older use of computers.
    is_new_to_computers: bool,
}

impl Claude {
    /// The traits of the model of this name, which may have a prefix or a suffix of who serves it.
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

    /// True if it is told how many tokens it may think.
    pub(crate) fn is_told_a_number(&self) -> bool {
        self.thinking == ClaudeThinking::Budget
    }

    /// The type of its tool to use a computer, and the feature that must be asked for.
    pub(super) fn computer(&self) -> (&'static str, &'static str) {
        if self.is_new_to_computers {
            ("computer_20250124", "computer-use-2025-01-24")
        } else {
            ("computer_20251124", "computer-use-2025-11-24")
        }
    }
}

/// The version in a name such as `claude-opus-4-6`, `claude-3-7-sonnet-20250219` or `us.anthropic.claude-sonnet-5-v1:0`.
fn version(model: &str) -> Option<(u32, u32)> {
    let (_, name) = model.split_once("claude-")?;
    let words = name.split(['-', '.', '@', ':', '/']);
    // A date has more digits, and a revision begins with a letter.
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
}
