//! Permissions: rules that decide which tool calls may run.

mod paths;
mod rule;
#[cfg(feature = "shell")]
mod shell;
mod store;
pub(crate) mod wildcard;

use serde::{Deserialize, Serialize};
use serde_json::Value;

#[cfg(feature = "shell")]
pub(crate) use self::shell::covering;
pub(crate) use self::wildcard::fits;
pub use self::{
    rule::{Match, Rule},
    store::{RuleFile, RuleStore},
};

/// Decision about a tool call. Ordered: of several that apply, the strictest wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Policy {
    /// The call runs.
    Allow,
    /// A person is asked first.
    Ask,
    /// The call never runs, and nobody is asked.
    Deny,
}

/// Rules that decide which tool calls may run. [`Approval`](crate::Approval) enforces them.
///
/// Of the rules that match a call, the strictest wins: deny over ask, ask over allow. Calls without
/// a matching rule get the [default](Self::default_policy), which is to ask. A rule never allows
/// input that cannot be interpreted reliably (a path with an unknown target, a command line that
/// shells parse differently): a person is asked.
///
/// With the feature `shell`, rules can match command lines, which are parsed: each command in a
/// line, and each file that it writes to, must be allowed. See [`Match`].
///
/// ```
/// use agent_middleware::{Permissions, permissions::{Policy, Rule}};
/// use serde_json::json;
///
/// let permissions = Permissions::new()
///     .rule(Rule::allow("read_file").path("path", "src/**"))
///     .rule(Rule::deny("*_file").path("path", "**/.env"));
///
/// let policy = |tool, args| permissions.decide(tool, &args).policy;
/// assert_eq!(policy("read_file", json!({"path": "src/a/../b.rs"})), Policy::Allow);
/// assert_eq!(policy("read_file", json!({"path": "src/../b.rs"})), Policy::Ask);
/// assert_eq!(policy("read_file", json!({"path": "src/.env"})), Policy::Deny);
/// ```
///
/// In a configuration file:
///
/// ```
/// # let permissions: agent_middleware::Permissions = serde_json::from_str(r#"
/// {"default": "ask", "root": "/app", "rules": [
///     {"policy": "allow", "tool": "read_*", "when": {"path": {"path": ["src/**"]}}},
///     {"policy": "deny", "tool": "*_file", "when": {"path": {"path": ["**/.env"]}}}
/// ]}
/// # "#)?;
/// # assert_eq!(permissions.rules.len(), 2);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Permissions {
    /// Policy for calls without a matching rule. Default: ask.
    #[serde(rename = "default")]
    pub default_policy: Policy,
    /// Directory that relative paths are resolved against; absolute paths below it also match as
    /// relative ones. Default: unknown, so that a relative path that leaves its start is unclear.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
    /// The rules, in any order.
    pub rules: Vec<Rule>,
}

/// The decision about a call, with its reason.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Ruling {
    /// The decision.
    pub policy: Policy,
    /// The reason, for people.
    pub why: String,
    /// True if the decision depends on the arguments, so that an approval of the whole tool does not
    /// lift it.
    pub(crate) of_arguments: bool,
}

/// Result of matching a call against a rule. Ordered: all parts of a rule must match.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fit {
    No,
    /// Cannot be determined.
    Unclear,
    Yes,
}

impl Default for Permissions {
    fn default() -> Self {
        Self { default_policy: Policy::Ask, root: None, rules: Vec::new() }
    }
}

impl Permissions {
    /// Creates permissions without rules: every call is asked about.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the policy for calls without a matching rule.
    #[must_use]
    pub fn otherwise(mut self, policy: Policy) -> Self {
        self.default_policy = policy;
        self
    }

    /// Sets the directory that relative paths are resolved against.
    #[must_use]
    pub fn root(mut self, directory: impl Into<String>) -> Self {
        self.root = Some(directory.into());
        self
    }

    /// Adds a rule.
    #[must_use]
    pub fn rule(mut self, rule: Rule) -> Self {
        self.rules.push(rule);
        self
    }

    /// Returns the decision about a call of `tool` with these arguments.
    pub fn decide(&self, tool: &str, arguments: &Value) -> Ruling {
        let rules: Vec<_> = self.rules.iter().enumerate().filter(|(_, rule)| rule.names(tool)).collect();
        if rules.is_empty() {
            return self.otherwise_ruling();
        }
        #[cfg(feature = "shell")]
        if let Some(ruling) = self.decide_lines(&rules, arguments) {
            return ruling;
        }
        self.strictest(&rules, arguments, |_, _, _| Fit::No).unwrap_or_else(|| self.otherwise_ruling())
    }

    /// Returns the strictest decision of the rules; `line` matches a rule's patterns against the
    /// command line in an argument.
    fn strictest(
        &self,
        rules: &[(usize, &Rule)],
        arguments: &Value,
        line: impl Fn(&Rule, &str, &[String]) -> Fit,
    ) -> Option<Ruling> {
        let of_rule = |(at, rule): &(usize, &Rule)| {
            let fit = rule.fit(arguments, self.root.as_deref(), |argument, patterns| line(rule, argument, patterns));
            let policy = match (rule.policy, fit) {
                (policy, Fit::Yes) => policy,
                (Policy::Ask | Policy::Deny, Fit::Unclear) => Policy::Ask,
                _ => return None,
            };
            Some(Ruling { policy, why: format!("rule {} says so", at + 1), of_arguments: rule.has_conditions() })
        };
        rules.iter().filter_map(of_rule).max_by_key(|ruling| (ruling.policy, ruling.of_arguments))
    }

    fn otherwise_ruling(&self) -> Ruling {
        Ruling { policy: self.default_policy, why: "no rule fits".to_owned(), of_arguments: false }
    }
}
