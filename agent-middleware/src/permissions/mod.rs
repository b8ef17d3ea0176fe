//! Which tool calls may run: rules, and what they make of a call.

mod paths;
mod rule;
#[cfg(feature = "shell")]
mod shell;
mod store;
pub(crate) mod wildcard;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub(crate) use self::wildcard::fits;
pub use self::{
    rule::{Match, Rule},
    store::{RuleFile, RuleStore},
};

/// What is done about a tool call. Ordered: of several that apply, the strictest holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Policy {
    /// It runs.
    Allow,
    /// A person is asked first.
    Ask,
    /// It never runs, and nobody is asked.
    Deny,
}

/// Which tool calls may run. [`Approval`](crate::Approval) acts on it.
///
/// Of the rules that fit a call the strictest holds: a denial wins over a question, a question over leave. What no rule fits
/// has the [default](Self::default_policy), which is to ask. What cannot be understood (a path that leads nobody knows where,
/// a command line that a shell would read in ways of its own) is never allowed by a rule: it is asked about.
///
/// With the feature `shell` rules read command lines, which are taken apart: each command in a line, and each file that it
/// writes to, must be allowed by itself. See [`Match`].
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
    /// The policy of what no rule fits. Default: ask.
    #[serde(rename = "default")]
    pub default_policy: Policy,
    /// The directory that relative paths begin at; absolute ones below it are known as relative ones too. Default: unknown,
    /// so that a relative path that goes above its start is unclear.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
    /// The rules, in any order.
    pub rules: Vec<Rule>,
}

/// What is to be done about a call, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Ruling {
    /// What is to be done.
    pub policy: Policy,
    /// Why, for people.
    pub why: String,
}

/// How a call fits a rule. Ordered: all parts of a rule must fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fit {
    No,
    /// Nobody can say.
    Unclear,
    Yes,
}

impl Default for Permissions {
    fn default() -> Self {
        Self { default_policy: Policy::Ask, root: None, rules: Vec::new() }
    }
}

impl Permissions {
    /// No rules: everything is asked about.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the policy of what no rule fits.
    #[must_use]
    pub fn otherwise(mut self, policy: Policy) -> Self {
        self.default_policy = policy;
        self
    }

    /// Sets the directory that relative paths begin at.
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

    /// What is to be done about a call of `tool` with these arguments.
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

    /// The strictest that the rules say, where `line` is how a rule's patterns fit the command line in an argument.
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
            Some(Ruling { policy, why: format!("rule {} says so", at + 1) })
        };
        rules.iter().filter_map(of_rule).max_by_key(|ruling| ruling.policy)
    }

    fn otherwise_ruling(&self) -> Ruling {
        Ruling { policy: self.default_policy, why: "no rule fits".to_owned() }
    }
}
