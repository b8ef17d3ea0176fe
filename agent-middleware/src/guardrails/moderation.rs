//! [`Moderation`]: a guard with categories and scores.

use std::{collections::BTreeMap, fmt, sync::Arc};

use agent_core::{Result, RunCx};
use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::guardrails::{Guard, GuardStage, GuardSubject, GuardVerdict, Guarded};

/// Scores a text by category, using a provider's endpoint or your own model.
#[async_trait]
pub trait Moderator: Send + Sync + 'static {
    /// Returns the score of each category, from 0 (none) to 1.
    ///
    /// # Errors
    /// If the text cannot be scored: nothing passes then, unless the guard fails open.
    async fn classify(&self, cx: &RunCx, text: &str) -> Result<BTreeMap<String, f64>>;
}

/// Thresholds of a moderation, and the answer to refused texts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct ModerationConfig {
    /// Lowest score that is refused, by category.
    pub thresholds: BTreeMap<String, f64>,
    /// Lowest refused score of all other categories. Default: 0.5.
    pub threshold: f64,
    /// Answer to refused texts. Default: "I cannot help with that."
    pub answer: String,
}

impl Default for ModerationConfig {
    fn default() -> Self {
        Self { thresholds: BTreeMap::new(), threshold: 0.5, answer: "I cannot help with that.".to_owned() }
    }
}

/// Refuses texts that a [`Moderator`] scores too high: a guard for
/// [`Guardrails`](crate::Guardrails).
///
/// ```
/// use agent_middleware::{Guardrails, guardrails::{Moderation, WordList}};
///
/// let words = WordList::new().word("violence", "stab").word("drugs", "heroin");
/// let moderation = Moderation::new(words).threshold("drugs", 0.9).answer("Let us talk about something else.");
/// // Checks input and output; `at`, `parallel` and `fail_open` set what is not as by default.
/// let guardrails = Guardrails::new().guard(moderation.guard().parallel());
/// # drop(guardrails);
/// ```
pub struct Moderation {
    moderator: Arc<dyn Moderator>,
    config: ModerationConfig,
}

impl Moderation {
    /// Refuses texts with a score of 0.5 or more in any category.
    pub fn new(moderator: impl Moderator) -> Self {
        Self { moderator: Arc::new(moderator), config: ModerationConfig::default() }
    }

    /// Sets all settings that are data.
    #[must_use]
    pub fn config(mut self, config: ModerationConfig) -> Self {
        self.config = config;
        self
    }

    /// Sets the lowest refused score of a category.
    #[must_use]
    pub fn threshold(mut self, category: impl Into<String>, least: f64) -> Self {
        self.config.thresholds.insert(category.into(), least);
        self
    }

    /// Sets the answer to refused texts.
    #[must_use]
    pub fn answer(mut self, text: impl Into<String>) -> Self {
        self.config.answer = text.into();
        self
    }

    /// Returns a guard of input and output, named `moderation`.
    pub fn guard(self) -> Guarded {
        Guarded::new("moderation", self).at(GuardStage::Input).at(GuardStage::Output)
    }
}

#[async_trait]
impl Guard for Moderation {
    async fn check(&self, cx: &RunCx, subject: &GuardSubject) -> Result<GuardVerdict> {
        let scores = self.moderator.classify(cx, &subject.text).await?;
        let passes = |(category, score): (&String, &f64)| {
            *score < self.config.thresholds.get(category).copied().unwrap_or(self.config.threshold)
        };
        // A NaN score fails the comparison, and so passes nothing.
        Ok(match scores.iter().all(passes) {
            true => GuardVerdict::Pass,
            false => GuardVerdict::Refuse(self.config.answer.clone()),
        })
    }
}

impl fmt::Debug for Moderation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Moderation").field("config", &self.config).finish_non_exhaustive()
    }
}

/// A moderator without a model: a category has the score 1 if one of its words is in the text,
/// ignoring case.
#[derive(Clone, Debug, Default)]
pub struct WordList(Vec<(String, String)>);

impl WordList {
    /// Creates an empty list.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a word to a category.
    #[must_use]
    pub fn word(mut self, category: impl Into<String>, word: impl Into<String>) -> Self {
        self.0.push((category.into(), word.into().to_lowercase()));
        self
    }
}

#[async_trait]
impl Moderator for WordList {
    async fn classify(&self, _: &RunCx, text: &str) -> Result<BTreeMap<String, f64>> {
        let text = text.to_lowercase();
        let words: Vec<&str> = text.split(|c: char| !c.is_alphanumeric()).collect();
        let mut scores = BTreeMap::new();
        for (category, word) in &self.0 {
            let score: &mut f64 = scores.entry(category.clone()).or_default();
            *score = score.max(f64::from(u8::from(words.contains(&word.as_str()))));
        }
        Ok(scores)
    }
}
