//! Which tools are asked about, and how.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use serde::{Deserialize, Serialize};

use super::DecisionKind;
use crate::{Permissions, permissions::Policy};

/// Which tools are asked about, and how. By default none is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct ApprovalConfig {
    /// Which calls run, which are asked about, which are denied. Left out, all run; given without a `default`, what no rule
    /// fits is asked about.
    pub permissions: Permissions,
    /// Tools (`*` for any number of characters, `?` for one) whose calls are asked about where they may destroy something, or nobody says
    /// that they do not, though they may run by the permissions. Default: none.
    pub if_risky: BTreeSet<String>,
    /// What a tool does, in words for whoever decides.
    pub descriptions: BTreeMap<String, String>,
    /// Arguments that a question does not show, by tool; `*` is every tool.
    pub redact: BTreeMap<String, BTreeSet<String>>,
    /// Decisions that are accepted; rejecting always is. Default: all.
    pub decisions: BTreeSet<DecisionKind>,
    /// Asks once about all calls of a message, before any of them runs. Default: about each.
    pub batched: bool,
    /// Says what it would do, as events, and does nothing. Default: false.
    pub shadow: bool,
    /// Longest time in which a question can be answered, from when it is asked; in configuration files, seconds. Then the
    /// call is denied. Default: without end.
    #[serde(with = "agent_core::seconds")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<agent_core::seconds::Seconds>"))]
    pub expires: Option<Duration>,
    /// Who alone may answer. Default: anybody.
    pub actor: Option<String>,
    /// Longest time that an [`Approver`](super::Approver) may take; in configuration files, seconds. Then the call is
    /// denied. Default: five minutes.
    #[serde(with = "agent_core::seconds")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<agent_core::seconds::Seconds>"))]
    pub timeout: Option<Duration>,
}

impl Default for ApprovalConfig {
    fn default() -> Self {
        Self {
            permissions: Permissions::new().otherwise(Policy::Allow),
            if_risky: BTreeSet::new(),
            descriptions: BTreeMap::new(),
            redact: BTreeMap::new(),
            decisions: DecisionKind::ALL.into(),
            batched: false,
            shadow: false,
            expires: None,
            actor: None,
            timeout: Some(Duration::from_secs(300)),
        }
    }
}

impl ApprovalConfig {
    /// The arguments of `tool` that are not shown.
    pub(super) fn hidden(&self, tool: &str) -> impl Iterator<Item = &str> {
        let of = |tool: &str| self.redact.get(tool).into_iter().flatten().map(String::as_str);
        of(tool).chain(of("*"))
    }

    /// The decisions that are accepted.
    pub(super) fn accepted(&self) -> BTreeSet<DecisionKind> {
        self.decisions.iter().copied().chain([DecisionKind::Reject]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_asked_unless_permissions_are_given_and_then_what_they_do_not_name_is() {
        let config = |json| serde_json::from_str::<ApprovalConfig>(json).expect("parses").permissions;
        let policy = |permissions: Permissions, tool| permissions.decide(tool, &serde_json::json!({})).policy;
        assert_eq!(policy(config("{}"), "f"), Policy::Allow);
        let rules = r#"{"permissions": {"rules": [{"policy": "allow", "tool": "read_*"}]}}"#;
        assert_eq!(policy(config(rules), "read_file"), Policy::Allow);
        assert_eq!(policy(config(rules), "f"), Policy::Ask);
    }

    #[test]
    fn a_misspelt_field_or_policy_is_refused() {
        for wrong in [
            r#"{"tools": {}}"#,
            r#"{"permissions": {"rules": [{"policy": "sometimes", "tool": "f"}]}}"#,
            r#"{"permissions": {"rules": [{"policy": "ask", "tool": "f", "when": {"x": {"glob": ["a"]}}}]}}"#,
            r#"{"timeout": -1}"#,
        ] {
            assert!(serde_json::from_str::<ApprovalConfig>(wrong).is_err(), "{wrong}");
        }
    }
}
