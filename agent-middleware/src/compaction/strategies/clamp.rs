//! [`ClampMessages`].

use agent_core::{Part, Result};
use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::Strategy;
use crate::{
    compaction::{Task, Unit},
    cut,
};

/// Truncates the middle of oversized texts in user messages and tool results, including recent
/// ones. The model's own messages are never truncated: its provider would not accept them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct ClampMessages {
    head: usize,
    tail: usize,
}

impl Default for ClampMessages {
    fn default() -> Self {
        Self { head: 4_000, tail: 4_000 }
    }
}

impl ClampMessages {
    /// Keeps the first and the last 4,000 characters of a text.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets how many characters are kept at the beginning and at the end of a text.
    #[must_use]
    pub fn to(mut self, head: usize, tail: usize) -> Self {
        (self.head, self.tail) = (head, tail);
        self
    }

    fn clamp(&self, parts: &[Part]) -> Option<Vec<Part>> {
        let clamped = |part: &Part| cut::middle(part.as_text()?, self.head, self.tail);
        let all: Vec<_> = parts.iter().map(clamped).collect();
        let any = all.iter().any(Option::is_some);
        any.then(|| {
            let texts = parts.iter().zip(all);
            texts.map(|(part, cut)| cut.map_or_else(|| part.clone(), Part::text)).collect()
        })
    }
}

#[async_trait]
impl Strategy for ClampMessages {
    fn name(&self) -> &str {
        "clamp_messages"
    }

    async fn compact(&self, _: &Task<'_>, mut units: Vec<Unit>) -> Result<Vec<Unit>> {
        for unit in &mut units {
            unit.edit_results(|result| self.clamp(result.parts()));
            let clamped = match unit.first() {
                agent_core::Message::User(message) => self.clamp(message.parts()),
                _ => None,
            };
            if let (Some(clamped), Some(parts)) = (clamped, unit.user_parts_mut()) {
                *parts = clamped;
            }
        }
        Ok(units)
    }
}
