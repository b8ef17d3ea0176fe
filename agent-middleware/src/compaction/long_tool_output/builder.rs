//! [`LongToolOutputBuilder`].

use std::sync::Arc;

use agent_core::{Error, Result, TokenCounter, model::ApproximateCounter};

use super::{LongToolOutput, LongToolOutputConfig};
use crate::{
    archive::{Archive, output_tool},
    setters::part_setters,
};

/// Builder of a [`LongToolOutput`].
pub struct LongToolOutputBuilder {
    config: LongToolOutputConfig,
    counter: Arc<dyn TokenCounter>,
    archive: Option<Arc<dyn Archive>>,
}

impl Default for LongToolOutputBuilder {
    fn default() -> Self {
        Self { config: LongToolOutputConfig::default(), counter: Arc::new(ApproximateCounter), archive: None }
    }
}

impl LongToolOutputBuilder {
    /// Sets all settings that are data.
    #[must_use]
    pub fn config(mut self, config: LongToolOutputConfig) -> Self {
        self.config = config;
        self
    }

    /// Sets the maximum number of characters of an output. Default: 10,000.
    #[must_use]
    pub fn max_chars(mut self, most: usize) -> Self {
        self.config.max_chars = most;
        self
    }

    /// Sets the maximum number of tokens of an output, in addition to the limit on characters.
    #[must_use]
    pub fn max_tokens(mut self, most: u64) -> Self {
        self.config.max_tokens = Some(most);
        self
    }

    /// Sets how many characters of the beginning and of the end of a longer output are shown.
    /// Default: 5,000 of each.
    #[must_use]
    pub fn show(mut self, head: usize, tail: usize) -> Self {
        (self.config.head_chars, self.config.tail_chars) = (head, tail);
        self
    }

    /// Never truncates the outputs of this tool.
    #[must_use]
    pub fn bypass(mut self, tool: impl Into<String>) -> Self {
        self.config.bypass.insert(tool.into());
        self
    }

    part_setters! {
        /// Sets the token counter. Default: four characters per token.
        counter: TokenCounter;

        /// Archives whole outputs, and offers the model a tool to read parts of them:
        /// `read_output`.
        archive: Archive;
    }

    /// Checks the settings and builds the middleware.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) if the shown part exceeds the limit.
    pub fn build(self) -> Result<LongToolOutput> {
        let LongToolOutputConfig { max_chars, head_chars, tail_chars, .. } = self.config;
        if head_chars.saturating_add(tail_chars) > max_chars {
            return Err(Error::config(format!(
                "long tool output: the {head_chars} characters of the beginning and {tail_chars} of the end are more than the \
                 {max_chars} that an output may have: show less, or allow more"
            )));
        }
        Ok(LongToolOutput {
            tools: self.archive.iter().map(output_tool).collect(),
            config: self.config,
            counter: self.counter,
            archive: self.archive,
        })
    }
}

impl std::fmt::Debug for LongToolOutputBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LongToolOutputBuilder").field("config", &self.config).finish_non_exhaustive()
    }
}
