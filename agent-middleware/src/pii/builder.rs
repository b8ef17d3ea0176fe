//! [`PiiBuilder`].

use std::{fmt, sync::Arc};

use agent_core::{Error, Result};

use super::{Pii, PiiConfig, PiiKind, PiiRule, PiiStrategy, detect, redactor::Rules};
use crate::pii::Detector;

/// Builder of a [`Pii`]. Without a rule or a detector it uses the [default rules](PiiConfig).
#[derive(Default)]
pub struct PiiBuilder {
    config: PiiConfig,
    /// The rules that were set. `None`: the default rules.
    rules: Option<Vec<PiiRule>>,
    own: Vec<(Arc<dyn Detector>, PiiStrategy)>,
    key: Vec<u8>,
}

impl PiiBuilder {
    /// Sets all settings that are data. Its rules replace those added before.
    #[must_use]
    pub fn config(mut self, config: PiiConfig) -> Self {
        self.rules = Some(config.rules.clone());
        self.config = config;
        self
    }

    /// Adds a rule: the kind of data to find, and the strategy for findings. The first rule replaces
    /// the default rules.
    #[must_use]
    pub fn rule(mut self, find: PiiKind, strategy: PiiStrategy) -> Self {
        self.rules.get_or_insert_default().push(PiiRule::new(find, strategy));
        self
    }

    /// Redacts this kind of data: findings are replaced by its name.
    #[must_use]
    pub fn redact(self, find: PiiKind) -> Self {
        self.rule(find, PiiStrategy::Redact)
    }

    /// Adds your own detector, which replaces the default rules.
    #[must_use]
    pub fn detector(mut self, detector: impl Detector, strategy: PiiStrategy) -> Self {
        self.own.push((Arc::new(detector), strategy));
        self
    }

    /// Sets the key of [hashes](PiiStrategy::Hash). Anybody with the key can test guesses against a
    /// hash.
    #[must_use]
    pub fn hash_key(mut self, key: impl AsRef<[u8]>) -> Self {
        self.key = key.as_ref().to_vec();
        self
    }

    /// Sets whether the messages sent to a model are scanned. Default: true.
    #[must_use]
    pub fn input(mut self, wanted: bool) -> Self {
        self.config.input = wanted;
        self
    }

    /// Sets whether model responses are scanned. Default: true.
    #[must_use]
    pub fn output(mut self, wanted: bool) -> Self {
        self.config.output = wanted;
        self
    }

    /// Sets whether the arguments of tool calls are scanned. Default: false.
    #[must_use]
    pub fn tool_input(mut self, wanted: bool) -> Self {
        self.config.tool_input = wanted;
        self
    }

    /// Sets whether tool outputs are scanned. Default: true.
    #[must_use]
    pub fn tool_output(mut self, wanted: bool) -> Self {
        self.config.tool_output = wanted;
        self
    }

    /// Checks the settings and builds the middleware.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) without a rule or a place to apply rules
    /// to, for an invalid regular expression, or for hashing without a key.
    pub fn build(mut self) -> Result<Pii> {
        match self.rules {
            Some(rules) => self.config.rules = rules,
            None if !self.own.is_empty() => self.config.rules.clear(),
            None => {}
        }
        let PiiConfig { input, output, tool_input, tool_output, .. } = self.config;
        if self.config.rules.is_empty() && self.own.is_empty() {
            return Err(Error::config("pii: no rules: add one, or leave 'rules' out for the default rules"));
        }
        if !(input || output || tool_input || tool_output) {
            return Err(Error::config("pii: input, output, tool_input and tool_output are all off: set one to true"));
        }
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
