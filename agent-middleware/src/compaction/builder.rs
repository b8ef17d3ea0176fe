//! [`ContextCompactionBuilder`].

use std::{sync::Arc, time::SystemTime};

use agent_core::{Error, Model, PerRun, Result, TokenCounter, model::ApproximateCounter};

use super::{
    ClampMessages, ClearToolResults, CompactionConfig, ContextCompaction, Keep, Pins, SlidingWindow, Strategy, Tiers,
    Trigger,
};
use crate::{
    archive::{Archive, history_tools},
    setters::part_setters,
};

/// Builder of a [`ContextCompaction`].
pub struct ContextCompactionBuilder {
    config: CompactionConfig,
    strategy: Option<Arc<dyn Strategy>>,
    emergency: Option<Arc<dyn Strategy>>,
    model: Option<Arc<dyn Model>>,
    counter: Arc<dyn TokenCounter>,
    archive: Option<Arc<dyn Archive>>,
    clock: Arc<dyn Fn() -> SystemTime + Send + Sync>,
}

impl Default for ContextCompactionBuilder {
    fn default() -> Self {
        Self {
            config: CompactionConfig::default(),
            strategy: None,
            emergency: None,
            model: None,
            counter: Arc::new(ApproximateCounter),
            archive: None,
            clock: Arc::new(SystemTime::now),
        }
    }
}

impl ContextCompactionBuilder {
    /// Sets all settings that are data.
    #[must_use]
    pub fn config(mut self, config: CompactionConfig) -> Self {
        self.config = config;
        self
    }

    /// Sets the maximum number of tokens of a prompt. Default: the context window of the called
    /// model.
    #[must_use]
    pub fn max_tokens(mut self, tokens: u64) -> Self {
        self.config.max_tokens = Some(tokens);
        self
    }

    /// Sets when the conversation is compacted. Default: at three quarters of the window.
    #[must_use]
    pub fn trigger(mut self, trigger: Trigger) -> Self {
        self.config.trigger = trigger;
        self
    }

    /// Sets the fraction of the window that should be used after a compaction. Default: 0.4.
    #[must_use]
    pub fn target(mut self, part: f64) -> Self {
        self.config.target = part;
        self
    }

    /// Sets the compaction strategy. Default: [`CacheAware`](super::CacheAware).
    #[must_use]
    pub fn strategy(mut self, strategy: impl Strategy) -> Self {
        self.strategy = Some(Arc::new(strategy));
        self
    }

    /// Sets the messages that are kept however old they are.
    #[must_use]
    pub fn pins(mut self, pins: Pins) -> Self {
        self.config.pins = pins;
        self
    }

    /// Sets the strategy for a prompt that the provider refuses. Default: the regular strategy with
    /// one iteration kept; then removal of all older tool results, then of all older messages, then
    /// truncation of the middle of oversized texts.
    #[must_use]
    pub fn emergency(mut self, strategy: impl Strategy) -> Self {
        self.config.emergency = true;
        self.emergency = Some(Arc::new(strategy));
        self
    }

    /// Disables the compaction of a refused prompt.
    #[must_use]
    pub fn without_emergency(mut self) -> Self {
        self.config.emergency = false;
        self
    }

    /// Offers the model a tool, `compact_context`, to request a compaction before its next turn.
    #[must_use]
    pub fn on_request(mut self) -> Self {
        self.config.on_request = true;
        self
    }

    part_setters! {
        /// Sets the model that writes the summaries of a configured strategy.
        model: Model;

        /// Sets the token counter. Default: four characters per token. Every counter is corrected
        /// by the usage that the provider reports, and each message is counted once.
        counter: TokenCounter;

        /// Archives removed messages, and offers the model tools to search them (`search_history`)
        /// and to read them (`read_archived`).
        archive: Archive;
    }

    /// Sets the clock for [`Trigger::Gap`]. Default: the system's.
    #[must_use]
    pub fn clock(mut self, now: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        self.clock = Arc::new(now);
        self
    }

    /// Checks the settings and builds the middleware.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) for an invalid fraction of the window,
    /// a summary without a model, or a strategy that needs an archive without one.
    pub fn build(self) -> Result<ContextCompaction> {
        self.config.check()?;
        let strategy = match self.strategy {
            Some(strategy) => strategy,
            None => self.config.strategy.build(self.model.as_ref())?,
        };
        let emergency = self.emergency.unwrap_or_else(|| {
            let then = Tiers::new()
                .then(strategy.clone())
                .then(ClearToolResults::new().keep(Keep::Iterations(1)))
                .then(SlidingWindow::new(1));
            Arc::new(then.then(ClampMessages::new()).then(ClampMessages::new().to(500, 500)))
        });
        for strategy in [&strategy, &emergency].into_iter().filter(|_| self.archive.is_none()) {
            if strategy.needs_archive() {
                let name = strategy.name();
                let message =
                    format!("context compaction: '{name}' needs an archive for what it removes: call .archive(..)");
                return Err(Error::config(message));
            }
        }
        Ok(ContextCompaction {
            tools: self.archive.as_ref().map(history_tools).unwrap_or_default(),
            config: self.config,
            strategy,
            emergency,
            counter: self.counter,
            archive: self.archive,
            clock: self.clock,
            runs: PerRun::default(),
            views: PerRun::default(),
        })
    }
}

impl std::fmt::Debug for ContextCompactionBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ContextCompactionBuilder").field("config", &self.config).finish_non_exhaustive()
    }
}
