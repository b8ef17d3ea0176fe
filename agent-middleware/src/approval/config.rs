//! Which tools are asked about, and how.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use serde::{Deserialize, Serialize};

use super::DecisionKind;

/// What is done about a tool call. Ordered: of several that apply, the strictest holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Policy {
    /// It runs.
    Allow,
    /// A person is asked first.
    Ask,
    /// It never runs, and nobody is asked.
    Deny,
}

/// Several tools under one policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Group {
    /// The tools.
    pub tools: BTreeSet<String>,
    /// The policy.
    pub policy: Policy,
}

/// Which tools are asked about, and how. By default none is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct ApprovalConfig {
    /// Policies of single tools by name; `*` is every tool that nothing else names.
    pub tools: BTreeMap<String, Policy>,
    /// Policies of groups, for tools that are not named singly. Of two groups with the same tool the stricter holds.
    pub groups: Vec<Group>,
    /// What a tool does, in words for whoever decides.
    pub descriptions: BTreeMap<String, String>,
    /// Decisions that are accepted; rejecting always is. Default: all.
    pub decisions: BTreeSet<DecisionKind>,
    /// Longest time that an [`Approver`](super::Approver) may take; in configuration files, seconds. Then the call is
    /// denied. Default: five minutes.
    #[serde(with = "crate::seconds")]
    pub timeout: Option<Duration>,
}

impl Default for ApprovalConfig {
    fn default() -> Self {
        Self {
            tools: BTreeMap::new(),
            groups: Vec::new(),
            descriptions: BTreeMap::new(),
            decisions: DecisionKind::ALL.into(),
            timeout: Some(Duration::from_secs(300)),
        }
    }
}

impl ApprovalConfig {
    /// The policy by the tool's name: its own, else that of its groups, else that of `*`, else it runs.
    pub(super) fn policy(&self, tool: &str) -> Policy {
        let of_groups = || self.groups.iter().filter(|g| g.tools.contains(tool)).map(|g| g.policy).max();
        let own = self.tools.get(tool).copied().or_else(of_groups).or_else(|| self.tools.get("*").copied());
        own.unwrap_or(Policy::Allow)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(json: &str) -> ApprovalConfig {
        serde_json::from_str(json).expect("parses")
    }

    #[test]
    fn the_own_name_beats_groups_and_groups_beat_the_star() {
        let config = config(
            r#"{"tools": {"f": "allow", "*": "deny"},
                "groups": [{"tools": ["f", "g"], "policy": "deny"}, {"tools": ["g", "h"], "policy": "ask"}]}"#,
        );
        assert_eq!(config.policy("f"), Policy::Allow);
        assert_eq!(config.policy("g"), Policy::Deny, "the stricter of two groups");
        assert_eq!(config.policy("h"), Policy::Ask);
        assert_eq!(config.policy("other"), Policy::Deny);
    }

    #[test]
    fn what_nothing_names_runs() {
        assert_eq!(config(r#"{"tools": {"f": "ask"}}"#).policy("g"), Policy::Allow);
    }

    #[test]
    fn a_misspelt_field_or_policy_is_refused() {
        for wrong in [r#"{"tool": {}}"#, r#"{"tools": {"f": "sometimes"}}"#, r#"{"timeout": -1}"#] {
            assert!(serde_json::from_str::<ApprovalConfig>(wrong).is_err(), "{wrong}");
        }
    }
}
