//! [`OffloadToolResults`].

use agent_core::Result;
use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::{Strategy, clear::replace_results};
use crate::{
    archive,
    compaction::{Keep, Task, Unit},
    cut,
};

/// Replaces large tool results by their first lines and a handle with which the model can read the
/// rest. Needs an archive.
///
/// Errors stay: a model that fails repeatedly must see why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct OffloadToolResults {
    keep: Keep,
    over: usize,
    preview: usize,
}

impl Default for OffloadToolResults {
    fn default() -> Self {
        Self { keep: Keep::Iterations(1), over: 2_000, preview: 200 }
    }
}

impl OffloadToolResults {
    /// Offloads results of more than 2,000 characters, except for the newest iteration's.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the recent part that is kept. Default: one iteration.
    #[must_use]
    pub fn keep(mut self, keep: Keep) -> Self {
        self.keep = keep;
        self
    }

    /// Sets the maximum number of characters of a result that stays. Default: 2,000.
    #[must_use]
    pub fn over(mut self, characters: usize) -> Self {
        self.over = characters;
        self
    }

    /// Sets how many characters of a result are shown. Default: 200.
    #[must_use]
    pub fn preview(mut self, characters: usize) -> Self {
        self.preview = characters;
        self
    }
}

#[async_trait]
impl Strategy for OffloadToolResults {
    fn name(&self) -> &str {
        "offload_tool_results"
    }

    fn needs_archive(&self) -> bool {
        true
    }

    async fn compact(&self, task: &Task<'_>, units: Vec<Unit>) -> Result<Vec<Unit>> {
        Ok(replace_results(task, self.keep, units, |result| {
            let text = archive::text_of(result);
            let characters = text.chars().count();
            if result.is_error() || characters <= self.over {
                return None;
            }
            let preview = cut::head(&text, self.preview);
            let read = archive::where_to_read(&archive::handle_of(result));
            Some(format!("{preview}\n[{characters} characters in all. {read}]"))
        }))
    }
}
