//! [`DedupReads`].

use std::collections::HashSet;

use agent_core::{Part, Result};
use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::Strategy;
use crate::compaction::{Task, Unit};

/// Keeps only the newest of equal results of the same tool with the same arguments, such as a file
/// that was read again unchanged. A differing result stays, since it records an earlier state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct DedupReads {
    tools: Option<Vec<String>>,
}

impl DedupReads {
    /// Considers the results of all tools.
    pub fn new() -> Self {
        Self::default()
    }

    /// Considers only the results of these tools.
    #[must_use]
    pub fn only<I: IntoIterator<Item: Into<String>>>(mut self, tools: I) -> Self {
        self.tools = Some(tools.into_iter().map(Into::into).collect());
        self
    }
}

/// Placeholder for the earlier result.
const AGAIN: &str = "The same call gave the same result again further on.";

#[async_trait]
impl Strategy for DedupReads {
    fn name(&self) -> &str {
        "dedup_reads"
    }

    async fn compact(&self, _: &Task<'_>, mut units: Vec<Unit>) -> Result<Vec<Unit>> {
        let mut seen = HashSet::new();
        for unit in units.iter_mut().rev() {
            let Some(message) = unit.first().as_assistant().cloned() else { continue };
            let calls: Vec<_> = message.calls().collect();
            // In reverse too, so that of two equal calls in one message the later stays.
            let again: HashSet<&str> = calls
                .iter()
                .zip(unit.results())
                .rev()
                .filter(|(call, result)| {
                    let named = |tools: &Vec<String>| tools.iter().any(|tool| **tool == *call.name);
                    self.tools.as_ref().is_none_or(named)
                        && !result.is_error()
                        && result.parts().iter().all(|part| part.as_text().is_some())
                        && !seen.insert((call.name.clone(), call.arguments.clone(), crate::archive::text_of(result)))
                })
                .map(|(call, _)| &*call.id)
                .collect();
            unit.edit_results(|result| {
                let repeats = again.contains(result.call_id()) && crate::archive::text_of(result).len() > AGAIN.len();
                repeats.then(|| vec![Part::text(AGAIN)])
            });
        }
        Ok(units)
    }
}
