//! A compaction as data.

use std::sync::Arc;

use agent_core::{Error, Model, Result};
use serde::{Deserialize, Serialize};

use super::{
    CacheAware, ClampMessages, ClearToolResults, DedupReads, Keep, OffloadToolResults, Pins, SlidingWindow, Strategy,
    Summary, Tiers, Trigger,
};

/// Configuration of a [`ContextCompaction`](super::ContextCompaction).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct CompactionConfig {
    /// Maximum number of tokens of a prompt. Default: the context window of the called model,
    /// without the tokens of its answer.
    pub max_tokens: Option<u64>,
    /// Condition for a compaction. Default: [`Trigger::default`].
    pub trigger: Trigger,
    /// Fraction of the window that should be used after a compaction: strategies that work in steps
    /// stop there. Below 1. Default: 0.4.
    pub target: f64,
    /// Fraction of the window up to which a strategy may decide that a compaction does not pay yet.
    /// At most 1. Default: 0.9.
    pub most: f64,
    /// Compaction strategy. Default: [`StrategyConfig::CacheAware`].
    pub strategy: StrategyConfig,
    /// Messages that are kept however old they are.
    pub pins: Pins,
    /// Compacts a prompt that the provider refuses as too long more aggressively and sends it once
    /// more. Default: true.
    pub emergency: bool,
    /// Offers the model a tool, `compact_context`, to request a compaction. Default: false.
    pub on_request: bool,
}

impl Default for CompactionConfig {
    fn default() -> Self {
        Self {
            max_tokens: None,
            trigger: Trigger::default(),
            target: 0.4,
            most: 0.9,
            strategy: StrategyConfig::default(),
            pins: Pins::default(),
            emergency: true,
            on_request: false,
        }
    }
}

impl CompactionConfig {
    pub(super) fn check(&self) -> Result<()> {
        let within = |name: &str, part: f64| {
            let ok = part > 0.0 && part <= 1.0;
            (!ok).then(|| format!("'{name}' is a part of the context window, above 0 and at most 1, not {part}"))
        };
        let problem =
            self.trigger.problem().or_else(|| within("target", self.target)).or_else(|| within("most", self.most));
        let problem = problem.or_else(|| (self.max_tokens == Some(0)).then(|| "'max_tokens' must not be 0".to_owned()));
        problem.map_or(Ok(()), |problem| Err(Error::config(format!("context compaction: {problem}"))))
    }
}

/// A strategy as data, such as `{"sliding_window": {"window_size": 20}}` or `"cache_aware"`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum StrategyConfig {
    /// [`CacheAware`] with its defaults.
    #[default]
    CacheAware,
    /// [`SlidingWindow`].
    SlidingWindow {
        /// Number of iterations that are kept.
        window_size: usize,
    },
    /// [`ClearToolResults`].
    ClearToolResults(ClearToolResults),
    /// [`OffloadToolResults`]: needs an archive.
    OffloadToolResults(OffloadToolResults),
    /// [`ClampMessages`].
    ClampMessages(ClampMessages),
    /// [`DedupReads`].
    DedupReads(DedupReads),
    /// [`Summary`]: needs a model.
    Summary(SummaryConfig),
    /// [`Tiers`] of other strategies.
    Tiers(Vec<Self>),
}

/// A [`Summary`] as data. Unset fields use the defaults.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct SummaryConfig {
    /// Recent part of the conversation that is kept.
    pub keep: Keep,
    /// Instructions for the summarising model.
    pub prompt: Option<String>,
    /// Maximum number of tokens of a summary.
    pub max_tokens: Option<u64>,
    /// Maximum number of conversation tokens per call of the model.
    pub input_tokens: Option<u64>,
}

impl StrategyConfig {
    /// Returns the strategy. `model` writes the summaries.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) for a summary without a model.
    pub fn build(&self, model: Option<&Arc<dyn Model>>) -> Result<Arc<dyn Strategy>> {
        Ok(match self {
            Self::CacheAware => Arc::new(CacheAware::default()),
            Self::SlidingWindow { window_size } => Arc::new(SlidingWindow::new(*window_size)),
            Self::ClearToolResults(clear) => Arc::new(clear.clone()),
            Self::OffloadToolResults(offload) => Arc::new(offload.clone()),
            Self::ClampMessages(clamp) => Arc::new(*clamp),
            Self::DedupReads(dedup) => Arc::new(dedup.clone()),
            Self::Summary(config) => {
                let model = model.ok_or_else(|| {
                    Error::config("context compaction: a summary needs a model to write it: give the builder one")
                })?;
                Arc::new(config.build(model.clone()))
            }
            Self::Tiers(tiers) => {
                let tiers = tiers.iter().map(|tier| tier.build(model)).collect::<Result<Vec<_>>>()?;
                Arc::new(tiers.into_iter().fold(Tiers::new(), Tiers::then))
            }
        })
    }
}

impl SummaryConfig {
    fn build(&self, model: Arc<dyn Model>) -> Summary {
        let mut summary = Summary::new(model).keep(self.keep);
        if let Some(prompt) = &self.prompt {
            summary = summary.prompt(prompt.as_str());
        }
        if let Some(tokens) = self.max_tokens {
            summary = summary.max_tokens(tokens);
        }
        if let Some(tokens) = self.input_tokens {
            summary = summary.input_tokens(tokens);
        }
        summary
    }
}
