//! Counts of tool calls, each counted once.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::LimitsConfig;

/// Counts of a run's admitted tool calls.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct CallCounts {
    calls: BTreeMap<String, u32>,
    /// The current step and its counted calls: a resumed call is not counted again.
    step: u32,
    counted: BTreeSet<String>,
}

impl CallCounts {
    /// Counts the call, or returns the limit that it exceeds.
    pub(super) fn admit(&mut self, config: &LimitsConfig, step: u32, call: &str, tool: &str) -> Result<(), String> {
        if self.step != step {
            (self.step, self.counted) = (step, BTreeSet::new());
        }
        if self.counted.contains(call) {
            return Ok(());
        }
        if let Some(most) = config.tools.get(tool).filter(|most| self.calls.get(tool).unwrap_or(&0) >= most) {
            return Err(format!("at most {most} calls of tool '{tool}' in one run"));
        }
        if let Some(most) = config.tool_calls.filter(|most| self.calls.values().sum::<u32>() >= *most) {
            return Err(format!("at most {most} tool calls in one run"));
        }
        *self.calls.entry(tool.to_owned()).or_default() += 1;
        self.counted.insert(call.to_owned());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn exactly_as_many_calls_as_allowed_are_admitted(
            total in prop::option::of(0u32..12),
            own in prop::option::of(0u32..6),
            calls in prop::collection::vec((1u32..4, 0u8..5, prop::sample::select(vec!["f", "g"])), 0..40),
        ) {
            let config = LimitsConfig {
                tool_calls: total,
                tools: own.map(|n| ("f".to_owned(), n)).into_iter().collect(),
                ..LimitsConfig::default()
            };
            let mut steps: Vec<_> = calls.into_iter().enumerate().collect();
            steps.sort_by_key(|(_, (step, ..))| *step);
            let (mut counts, mut f, mut all) = (CallCounts::default(), 0, 0);
            for (id, (step, again, tool)) in steps {
                let fits = total.is_none_or(|n| all < n) && (tool != "f" || own.is_none_or(|n| f < n));
                for _ in 0..=again {
                    prop_assert_eq!(counts.admit(&config, step, &id.to_string(), tool).is_ok(), fits);
                }
                if fits {
                    all += 1;
                    f += u32::from(tool == "f");
                }
            }
        }
    }
}
