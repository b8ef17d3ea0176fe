//! Configuration of [`Approval`](super::Approval).

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use serde::{Deserialize, Serialize};

use super::DecisionKind;
use crate::{Permissions, permissions::Policy};

/// Configuration of [`Approval`](crate::Approval): the calls that a person decides about, and the form of the question.
///
/// Without `permissions` and `if_risky`, the default asks about every call that may destroy something, or of which the tool
/// does not say that it destroys nothing: `if_risky: ['*']`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct ApprovalConfig {
    /// Permissions of tool calls: allow, ask or deny. If omitted, no rule applies; if given without a
    /// `default`, calls without a matching rule are asked about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permissions: Option<Permissions>,
    /// Tool patterns (`*` matches any number of characters, `?` one) whose calls are asked about if
    /// they may be destructive, or are not declared non-destructive, even if the permissions allow
    /// them. Default: none.
    pub if_risky: BTreeSet<String>,
    /// Descriptions of tools, for the deciding person.
    pub descriptions: BTreeMap<String, String>,
    /// Arguments that questions do not show, by tool; `*` is every tool.
    pub redact: BTreeMap<String, BTreeSet<String>>,
    /// Accepted decisions; rejections are always accepted. Default: all.
    pub decisions: BTreeSet<DecisionKind>,
    /// Asks once about all calls of a message, before any of them runs. Default: about each call
    /// separately.
    pub batched: bool,
    /// Only reports the decisions as events, without enforcing them. Default: false.
    pub shadow: bool,
    /// Time to answer a question after it was asked, in configuration files in seconds. Afterwards
    /// the call is denied. Default: unlimited.
    #[serde(with = "agent_core::seconds")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<agent_core::seconds::Seconds>"))]
    pub expires: Option<Duration>,
    /// The only person who may answer. Default: anybody.
    pub actor: Option<String>,
    /// Timeout of an [`Approver`](super::Approver), in configuration files in seconds. Afterwards
    /// the call is denied. Default: five minutes.
    #[serde(with = "agent_core::seconds")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<agent_core::seconds::Seconds>"))]
    pub timeout: Option<Duration>,
}

impl Default for ApprovalConfig {
    fn default() -> Self {
        Self {
            permissions: None,
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
    /// The permissions to edit; at first everything is allowed.
    pub(super) fn permissions_mut(&mut self) -> &mut Permissions {
        self.permissions.get_or_insert_with(|| Permissions::new().otherwise(Policy::Allow))
    }

    /// True if the permissions were set, and allow every call.
    pub(super) fn allows_all(&self) -> bool {
        let allows = |set: &Permissions| set.rules.is_empty() && set.default_policy == Policy::Allow;
        self.permissions.as_ref().is_some_and(allows)
    }

    /// Returns the arguments of `tool` that are not shown.
    pub(super) fn hidden(&self, tool: &str) -> impl Iterator<Item = &str> {
        let of = |tool: &str| self.redact.get(tool).into_iter().flatten().map(String::as_str);
        of(tool).chain(of("*"))
    }

    /// Returns the accepted decisions.
    pub(super) fn accepted(&self) -> BTreeSet<DecisionKind> {
        self.decisions.iter().copied().chain([DecisionKind::Reject]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permissions_ask_about_calls_that_match_no_rule() {
        let config = |json| serde_json::from_str::<ApprovalConfig>(json).expect("parses").permissions.expect("given");
        let policy = |permissions: Permissions, tool| permissions.decide(tool, &serde_json::json!({})).policy;
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
