//! A permission rule.

use std::collections::BTreeMap;

use agent_core::engine::canonical_json;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Fit, Policy, paths, wildcard};

/// A rule with a policy for the calls that it matches.
///
/// All its conditions must match: the tool's name, and each of the arguments. See
/// [`Permissions`](super::Permissions) for the combination of several rules.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Rule {
    /// Policy for matching calls.
    pub policy: Policy,
    /// Pattern for the tool's name; `*` matches any number of characters and `?` matches one.
    pub tool: String,
    /// Matches only calls with exactly these arguments, if set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Value>,
    /// Conditions for single arguments, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub when: BTreeMap<String, Match>,
}

/// Condition for an argument: it must match one of the patterns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Match {
    /// A path, or a list of paths, after resolving `.` and `..`. In a pattern, `*` and `?` do not
    /// match `/`, and `**` does. A pattern that begins with `/` matches absolute paths. To allow,
    /// all paths of a list must match; otherwise one is enough.
    Path(Vec<String>),
    /// A command line. The pattern consists of the words that a command begins with, in which `*`
    /// and `?` match characters of one word, and `**` at the end matches any further arguments.
    /// `> PATH` matches a file that is written to. Needs the feature `shell`.
    ///
    /// To deny or ask, the program's directory is ignored. To allow, the words must match
    /// literally, and the rest must be harmless: operands, and for known programs (`ls`, `git log`,
    /// `curl` and a hundred others) the options that do not write, send, delete or run anything. A
    /// few programs may have no operands, or only plain ones (`git push origin main`). Everything
    /// else must be among the words: `find . -delete`, `mytool --fast`. A program that runs others
    /// (`env`, `sudo`, `npx`, an interpreter) is allowed only by all of its words. `mytool **`
    /// trusts a program with arbitrary arguments. A program that sends data (`curl`, `rsync`), and one
    /// that is unknown, is not covered with an argument that contains a variable or the output of a
    /// command: `curl "https://example.org/?$KEY"`. No rule allows connections that the shell itself
    /// opens (`< /dev/tcp/..`).
    ///
    /// ```
    /// use agent_middleware::{Permissions, permissions::{Policy, Rule}};
    ///
    /// let permissions = Permissions::new()
    ///     .rule(Rule::allow("shell").command("command", "git log").command("command", "sort"))
    ///     .rule(Rule::deny("shell").command("command", "rm"));
    ///
    /// let policy = |line| permissions.decide("shell", &serde_json::json!({"command": line})).policy;
    /// assert_eq!(policy("git log --oneline | sort"), Policy::Allow);
    /// assert_eq!(policy("git log | sort -o f"), Policy::Ask);
    /// assert_eq!(policy("git log $(rm -rf x)"), Policy::Deny);
    /// ```
    #[cfg(feature = "shell")]
    Command(Vec<String>),
    /// A text; `*` matches any number of characters and `?` matches one. Other values are compared
    /// as JSON text.
    Text(Vec<String>),
}

impl Rule {
    /// Creates a rule that allows calls of this tool (`*` and `?` are wildcards).
    pub fn allow(tool: impl Into<String>) -> Self {
        Self::new(Policy::Allow, tool)
    }

    /// Creates a rule that asks about calls of this tool.
    pub fn ask(tool: impl Into<String>) -> Self {
        Self::new(Policy::Ask, tool)
    }

    /// Creates a rule that denies calls of this tool.
    pub fn deny(tool: impl Into<String>) -> Self {
        Self::new(Policy::Deny, tool)
    }

    /// Creates a rule for calls of this tool.
    pub fn new(policy: Policy, tool: impl Into<String>) -> Self {
        Self { policy, tool: tool.into(), arguments: None, when: BTreeMap::new() }
    }

    /// Matches only calls with exactly these arguments.
    #[must_use]
    pub fn with_arguments(mut self, arguments: Value) -> Self {
        self.arguments = Some(arguments);
        self
    }

    /// Matches only calls whose argument is a matching path: see [`Match::Path`]. Several patterns
    /// are alternatives.
    #[must_use]
    pub fn path(self, argument: impl Into<String>, pattern: impl Into<String>) -> Self {
        self.pattern(argument, pattern, Match::Path)
    }

    /// Matches only commands in this argument that begin with these words: see [`Match::Command`].
    /// Several patterns are alternatives.
    #[cfg(feature = "shell")]
    #[must_use]
    pub fn command(self, argument: impl Into<String>, words: impl Into<String>) -> Self {
        self.pattern(argument, words, Match::Command)
    }

    /// Matches only calls whose argument is a matching text: see [`Match::Text`]. Several patterns
    /// are alternatives.
    #[must_use]
    pub fn text(self, argument: impl Into<String>, pattern: impl Into<String>) -> Self {
        self.pattern(argument, pattern, Match::Text)
    }

    /// Sets the condition for an argument.
    #[cfg(feature = "shell")]
    pub(crate) fn with_match(mut self, argument: impl Into<String>, wanted: Match) -> Self {
        self.when.insert(argument.into(), wanted);
        self
    }

    fn pattern(
        mut self,
        argument: impl Into<String>,
        pattern: impl Into<String>,
        kind: fn(Vec<String>) -> Match,
    ) -> Self {
        let (argument, pattern) = (argument.into(), kind(vec![pattern.into()]));
        match (self.when.get_mut(&argument), pattern) {
            (Some(Match::Path(patterns)), Match::Path(more)) | (Some(Match::Text(patterns)), Match::Text(more)) => {
                patterns.extend(more);
            }
            #[cfg(feature = "shell")]
            (Some(Match::Command(patterns)), Match::Command(more)) => patterns.extend(more),
            (_, pattern) => drop(self.when.insert(argument, pattern)),
        }
        self
    }

    /// True if the rule depends on the arguments of a call.
    pub(crate) fn has_conditions(&self) -> bool {
        self.arguments.is_some() || !self.when.is_empty()
    }

    pub(super) fn names(&self, tool: &str) -> bool {
        wildcard::fits(&self.tool, tool, None)
    }

    /// Matches a call with these arguments; `line` matches patterns against the command line in an
    /// argument.
    #[cfg_attr(not(feature = "shell"), expect(unused_variables, reason = "no rule reads a command line"))]
    pub(super) fn fit(&self, arguments: &Value, root: Option<&str>, line: impl Fn(&str, &[String]) -> Fit) -> Fit {
        if self.arguments.as_ref().is_some_and(|wanted| canonical_json(wanted) != canonical_json(arguments)) {
            return Fit::No;
        }
        let fits = self.when.iter().map(|(argument, wanted)| match wanted {
            Match::Path(patterns) => self.fit_paths(arguments.get(argument), patterns, root),
            #[cfg(feature = "shell")]
            Match::Command(patterns) => line(argument, patterns),
            Match::Text(patterns) => fit_text(arguments.get(argument), patterns),
        });
        fits.min().unwrap_or(Fit::Yes)
    }

    fn fit_paths(&self, value: Option<&Value>, patterns: &[String], root: Option<&str>) -> Fit {
        let fit = |value: &Value| value.as_str().map_or(Fit::Unclear, |path| paths::fit(path, patterns, root));
        match (value, self.policy) {
            (Some(Value::Array(paths)), Policy::Allow) => paths.iter().map(fit).min().unwrap_or(Fit::Unclear),
            (Some(Value::Array(paths)), _) => paths.iter().map(fit).max().unwrap_or(Fit::Unclear),
            (Some(path), _) => fit(path),
            (None, _) => Fit::Unclear,
        }
    }
}

fn fit_text(value: Option<&Value>, patterns: &[String]) -> Fit {
    let Some(value) = value else { return Fit::No };
    let text = value.as_str().map_or_else(|| canonical_json(value), str::to_owned);
    if patterns.iter().any(|pattern| wildcard::fits(pattern, &text, None)) { Fit::Yes } else { Fit::No }
}
