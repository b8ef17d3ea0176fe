//! Conditions for a compaction.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Condition for a compaction. Conditions are combined with [`and`](Self::and) and
/// [`or`](Self::or).
///
/// In configuration files: `{"tokens": 100000}`, `{"fraction": 0.75}`, `{"messages": 200}`,
/// `{"gap": 300}` (seconds), `{"all": [..]}`, `{"any": [..]}`, `"never"`.
///
/// ```
/// use std::time::Duration;
///
/// use agent_middleware::compaction::Trigger;
///
/// // Nearly full; or half full when the provider's cache has gone cold anyway.
/// let trigger = Trigger::Fraction(0.75)
///     .or(Trigger::Fraction(0.5).and(Trigger::gap(Duration::from_secs(300))));
/// # drop(trigger);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Trigger {
    /// The prompt (system prompt, tools and messages) has at least this many tokens.
    Tokens(u64),
    /// The prompt fills at least this fraction of the context window, above 0 and at most 1. Never
    /// true if the window is unknown.
    Fraction(f64),
    /// The conversation has at least this many messages.
    Messages(usize),
    /// The model last responded to this agent, in this session, at least this many seconds ago: the
    /// provider's cache has expired, so that rewriting the conversation costs nothing extra. Never
    /// true before the first response.
    Gap(f64),
    /// All of these conditions hold; false if the list is empty.
    All(Vec<Self>),
    /// One of these conditions holds.
    Any(Vec<Self>),
    /// Never: compaction happens only on the model's request, and when a provider refuses the
    /// prompt.
    Never,
}

impl Default for Trigger {
    /// Three quarters of the context window.
    fn default() -> Self {
        Self::Fraction(0.75)
    }
}

/// State of a conversation before a model call.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Situation {
    pub(crate) tokens: u64,
    pub(crate) window: Option<u64>,
    pub(crate) messages: usize,
    pub(crate) since_answer: Option<Duration>,
}

impl Trigger {
    /// The model last responded at least this long ago.
    pub fn gap(gap: Duration) -> Self {
        Self::Gap(gap.as_secs_f64())
    }

    /// Both conditions hold.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        match self {
            Self::All(mut all) => {
                all.push(other);
                Self::All(all)
            }
            one => Self::All(vec![one, other]),
        }
    }

    /// One of the two conditions holds.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        match self {
            Self::Any(mut any) => {
                any.push(other);
                Self::Any(any)
            }
            one => Self::Any(vec![one, other]),
        }
    }

    /// Returns the problem of an invalid condition.
    pub(crate) fn problem(&self) -> Option<String> {
        match self {
            Self::Fraction(part) if !(*part > 0.0 && *part <= 1.0) => {
                Some(format!("a fraction of the context window is above 0 and at most 1, not {part}"))
            }
            Self::Gap(seconds) if *seconds <= 0.0 || seconds.is_nan() => {
                Some(format!("a gap is longer than 0 seconds, not {seconds}"))
            }
            Self::All(of) | Self::Any(of) => of.iter().find_map(Self::problem),
            _ => None,
        }
    }

    /// True if the condition depends on the time since the last response.
    pub(crate) fn looks_at_time(&self) -> bool {
        match self {
            Self::Gap(_) => true,
            Self::All(of) | Self::Any(of) => of.iter().any(Self::looks_at_time),
            _ => false,
        }
    }

    /// Returns a description with the numbers if the condition holds.
    pub(crate) fn holds(&self, now: &Situation) -> Option<String> {
        match self {
            Self::Tokens(most) => (now.tokens >= *most).then(|| format!("{} tokens of at most {most}", now.tokens)),
            Self::Fraction(part) => {
                let window = now.window?;
                let reached = now.tokens as f64 >= window as f64 * part;
                reached.then(|| {
                    let percent = 100.0 * now.tokens as f64 / window as f64;
                    format!("{} of {window} tokens: {percent:.1} % of at most {:.1} %", now.tokens, part * 100.0)
                })
            }
            Self::Messages(most) => {
                (now.messages >= *most).then(|| format!("{} messages of at most {most}", now.messages))
            }
            Self::Gap(seconds) => {
                let since = now.since_answer?.as_secs_f64();
                (since >= *seconds).then(|| format!("{since:.0} seconds since the last answer, at most {seconds:.0}"))
            }
            Self::All(of) => {
                let why: Vec<_> = of.iter().map(|one| one.holds(now)).collect::<Option<_>>()?;
                (!why.is_empty()).then(|| why.join(" and "))
            }
            Self::Any(of) => of.iter().find_map(|one| one.holds(now)),
            Self::Never => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(tokens: u64) -> Situation {
        Situation { tokens, window: Some(1000), messages: 5, since_answer: None }
    }

    #[test]
    fn three_quarters_is_exactly_three_quarters_and_the_reason_has_the_numbers() {
        assert_eq!(Trigger::default().holds(&at(749)), None);
        let why = Trigger::default().holds(&at(750)).expect("holds");
        assert_eq!(why, "750 of 1000 tokens: 75.0 % of at most 75.0 %");
    }

    #[test]
    fn a_fraction_of_an_unknown_window_never_holds() {
        assert_eq!(Trigger::default().holds(&Situation { window: None, ..at(u64::MAX) }), None);
    }

    #[test]
    fn a_gap_holds_from_its_first_second_and_not_before_any_answer() {
        let gap = Trigger::gap(Duration::from_secs(300));
        let after = |s| Situation { since_answer: Some(Duration::from_secs(s)), ..at(0) };
        assert!(gap.holds(&after(360)).is_some() && gap.holds(&after(300)).is_some());
        assert!(gap.holds(&after(299)).is_none() && gap.holds(&at(0)).is_none());
    }

    #[test]
    fn conditions_are_joined() {
        let both = Trigger::Tokens(10).and(Trigger::Messages(6));
        assert!(both.holds(&at(10)).is_none());
        assert_eq!(both.clone().or(Trigger::Messages(5)).holds(&at(0)).expect("holds"), "5 messages of at most 5");
        assert!(both.holds(&Situation { messages: 6, ..at(10) }).expect("holds").contains(" and "));
        assert!(Trigger::All(Vec::new()).holds(&at(10)).is_none());
    }
}
