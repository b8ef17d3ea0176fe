//! [`PiiBuilder`].

use std::{fmt, sync::Arc};

use agent_core::{Error, Result};

use super::{Pii, PiiConfig, PiiKind, PiiRule, PiiStrategy, detect, redactor::Rules};
use crate::pii::Detector;

/// Makes a [`Pii`].
#[derive(Default)]
pub struct PiiBuilder {
    config: PiiConfig,
    own: Vec<(Arc<dyn Detector>, PiiStrategy)>,
    key: Vec<u8>,
}

impl PiiBuilder {
    /// Sets everything that is data.
    #[must_use]
    pub fn config(mut self, config: PiiConfig) -> Self {
        self.config = config;
        self
    }

    /// Looks for these, and does that with them.
    #[must_use]
    pub fn rule(mut self, find: PiiKind, strategy: PiiStrategy) -> Self {
        self.config.rules.push(PiiRule::new(find, strategy));
        self
    }

    /// Redacts these: their name stands in their place.
    #[must_use]
    pub fn redact(self, find: PiiKind) -> Self {
        self.rule(find, PiiStrategy::Redact)
    }

    /// Looks with a detector of your own.
    #[must_use]
    pub fn detector(mut self, detector: impl Detector, strategy: PiiStrategy) -> Self {
        self.own.push((Arc::new(detector), strategy));
        self
    }

    /// Sets the key of [hashes](PiiStrategy::Hash): whoever has it can try out what a hash stands for.
    #[must_use]
    pub fn hash_key(mut self, key: impl AsRef<[u8]>) -> Self {
        self.key = key.as_ref().to_vec();
        self
    }

    /// Sets whether the messages that a model is sent are looked at. Default: true.
    #[must_use]
    pub fn input(mut self, wanted: bool) -> Self {
        self.config.input = wanted;
        self
    }

    /// Sets whether what a model says is looked at. Default: true.
    #[must_use]
    pub fn output(mut self, wanted: bool) -> Self {
        self.config.output = wanted;
        self
    }

    /// Sets whether the arguments of tool calls are looked at. Default: false.
    #[must_use]
    pub fn tool_input(mut self, wanted: bool) -> Self {
        self.config.tool_input = wanted;
        self
    }

    /// Sets whether what tools give is looked at. Default: true.
    #[must_use]
    pub fn tool_output(mut self, wanted: bool) -> Self {
        self.config.tool_output = wanted;
        self
    }

    /// Checks everything and makes the middleware.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) if a pattern is no expression, or something is hashed without a
    /// key.
    pub fn build(self) -> Result<Pii> {
        let mut rules = Vec::new();
        for PiiRule { find, strategy } in &self.config.rules {
            rules.extend(detect::of(find)?.into_iter().map(|detector| (detector, *strategy)));
        }
        rules.extend(self.own);
        let hashes = rules.iter().any(|(_, strategy)| *strategy == PiiStrategy::Hash);
        if hashes && self.key.is_empty() {
            return Err(Error::config(
                "pii: hashes need a key, since what has few forms is found by trying all: set hash_key, or redact",
            ));
        }
        Ok(Pii::of(self.config, Rules::new(rules, self.key)))
    }
}

impl fmt::Debug for PiiBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PiiBuilder").field("config", &self.config).field("own", &self.own.len()).finish_non_exhaustive()
    }
}
