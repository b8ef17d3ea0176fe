//! [`ClearToolResults`].

use agent_core::{Part, Result, ToolMessage};
use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::Strategy;
use crate::{
    archive,
    compaction::{Keep, Task, Unit},
};

/// Replaces old tool results by a placeholder line. All messages stay, with their ids and error
/// flags; only results change.
///
/// By default, the results of all tools are cleared except for those of the newest three
/// iterations.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct ClearToolResults {
    keep: Keep,
    only: Option<Vec<String>>,
    except: Vec<String>,
    at_least: u64,
    placeholder: String,
}

impl Default for ClearToolResults {
    fn default() -> Self {
        Self {
            keep: Keep::default(),
            only: None,
            except: Vec::new(),
            at_least: 0,
            placeholder: "Tool call result has been compacted.".into(),
        }
    }
}

impl ClearToolResults {
    /// Clears the results of all tools except for the newest.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the recent part that is kept. Default: three iterations.
    #[must_use]
    pub fn keep(mut self, keep: Keep) -> Self {
        self.keep = keep;
        self
    }

    /// Clears only the results of these tools; with an empty list, of none.
    #[must_use]
    pub fn only<I: IntoIterator<Item: Into<String>>>(mut self, tools: I) -> Self {
        self.only = Some(tools.into_iter().map(Into::into).collect());
        self
    }

    /// Never clears the results of these tools.
    #[must_use]
    pub fn except<I: IntoIterator<Item: Into<String>>>(mut self, tools: I) -> Self {
        self.except = tools.into_iter().map(Into::into).collect();
        self
    }

    /// Does nothing unless at least this many tokens are saved in total: rewriting a conversation
    /// invalidates its cache. Default: 0.
    #[must_use]
    pub fn at_least(mut self, tokens: u64) -> Self {
        self.at_least = tokens;
        self
    }

    /// Sets the placeholder for a cleared result.
    #[must_use]
    pub fn placeholder(mut self, text: impl Into<String>) -> Self {
        self.placeholder = text.into();
        self
    }

    fn applies_to(&self, tool: &str) -> bool {
        let named = |tools: &[String]| tools.iter().any(|name| name == tool);
        self.only.as_ref().is_none_or(|only| named(only)) && !named(&self.except)
    }
}

#[async_trait]
impl Strategy for ClearToolResults {
    fn name(&self) -> &str {
        "clear_tool_results"
    }

    async fn compact(&self, task: &Task<'_>, units: Vec<Unit>) -> Result<Vec<Unit>> {
        let cleared = replace_results(task, self.keep, units.clone(), |result| {
            if !self.applies_to(result.name()) {
                return None;
            }
            Some(match task.has_archive() {
                true => format!("{} {}", self.placeholder, archive::where_to_read(&archive::handle_of(result))),
                false => self.placeholder.clone(),
            })
        });
        let saved = task.total(&units).saturating_sub(task.total(&cleared));
        Ok(if saved > 0 && saved >= self.at_least { cleared } else { units })
    }
}

/// Replaces old results by `text`, where that is shorter.
pub(super) fn replace_results(
    task: &Task<'_>,
    keep: Keep,
    mut units: Vec<Unit>,
    text: impl Fn(&ToolMessage) -> Option<String>,
) -> Vec<Unit> {
    let removable = task.removable(keep, &units);
    for (unit, _) in units.iter_mut().zip(&removable).filter(|(_, removable)| **removable) {
        unit.edit_results(|result| {
            let parts = vec![Part::text(text(result)?)];
            let size = |parts: &[Part]| parts.iter().map(|part| weight(task, part)).sum::<u64>();
            (size(&parts) < size(result.parts())).then_some(parts)
        });
    }
    units
}

/// Estimates the tokens of a part. Parts without text count enough to be worth replacing.
fn weight(task: &Task<'_>, part: &Part) -> u64 {
    /// The usual count of token counters for an image.
    const MEDIA: u64 = 85;
    part.as_text().map_or(MEDIA, |text| task.text(text))
}
