//! One rule.

use std::collections::BTreeMap;

use agent_core::engine::canonical_json;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Fit, Policy, paths, wildcard};

/// What is done about the calls that it fits.
///
/// All that it says must hold: the tool's name, the arguments one by one. See [`Permissions`](super::Permissions) for how
/// several rules go together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Rule {
    /// What is done.
    pub policy: Policy,
    /// The tool's name, with `*` for any number of characters and `?` for one.
    pub tool: String,
    /// The arguments, if only calls with exactly these are meant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Value>,
    /// What single arguments must fit, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub when: BTreeMap<String, Match>,
}

/// What an argument must fit: one of the patterns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Match {
    /// A path, or a list of them, after `.` and `..` are taken out. In a pattern `*` and `?` stop at a `/`, and `**` does
    /// not. A pattern that begins with `/` is for absolute paths. To allow, all paths of a list must fit; else one is enough.
    Path(Vec<String>),
    /// A command line: the words that a command begins with, in which `*` and `?` stand for characters of one word, and `**`
    /// at the end for any further arguments. `> PATH` is a file that is written to. Needs the feature `shell`.
    ///
    /// To deny or ask, the program's directory does not matter. To allow, the words must be those, and what follows them must
    /// be harmless. That are operands, and of the programs that are known (`ls`, `git log`, `curl` and a hundred others) the
    /// options that neither write, send, delete nor run anything; a few programs may have no operands, or plain ones alone
    /// (`git push origin main`). All else must be among the words: `find . -delete`, `mytool --fast`. A program that runs
    /// others (`env`, `sudo`, `npx`, an interpreter) is allowed by the whole of its words. `mytool **` trusts a program with
    /// whatever arguments it is given. No connection that the shell itself opens (`< /dev/tcp/..`) is covered.
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
    /// Text, with `*` for any number of characters and `?` for one; other values are compared as JSON text.
    Text(Vec<String>),
}

impl Rule {
    /// Calls of this tool (`*` and `?` allowed) run.
    pub fn allow(tool: impl Into<String>) -> Self {
        Self::new(Policy::Allow, tool)
    }

    /// Calls of this tool are asked about.
    pub fn ask(tool: impl Into<String>) -> Self {
        Self::new(Policy::Ask, tool)
    }

    /// Calls of this tool never run.
    pub fn deny(tool: impl Into<String>) -> Self {
        Self::new(Policy::Deny, tool)
    }

    /// A rule for calls of this tool.
    pub fn new(policy: Policy, tool: impl Into<String>) -> Self {
        Self { policy, tool: tool.into(), arguments: None, when: BTreeMap::new() }
    }

    /// Only calls with exactly these arguments.
    #[must_use]
    pub fn with_arguments(mut self, arguments: Value) -> Self {
        self.arguments = Some(arguments);
        self
    }

    /// Only calls whose argument is a path that fits: see [`Match::Path`]. Of several patterns one must fit.
    #[must_use]
    pub fn path(self, argument: impl Into<String>, pattern: impl Into<String>) -> Self {
        self.pattern(argument, pattern, Match::Path)
    }

    /// Only commands in this argument that begin so: see [`Match::Command`]. Of several patterns one must fit.
    #[cfg(feature = "shell")]
    #[must_use]
    pub fn command(self, argument: impl Into<String>, words: impl Into<String>) -> Self {
        self.pattern(argument, words, Match::Command)
    }

    /// Only calls whose argument is a text that fits: see [`Match::Text`]. Of several patterns one must fit.
    #[must_use]
    pub fn text(self, argument: impl Into<String>, pattern: impl Into<String>) -> Self {
        self.pattern(argument, pattern, Match::Text)
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

    pub(super) fn names(&self, tool: &str) -> bool {
        wildcard::fits(&self.tool, tool, None)
    }

    /// How a call with these arguments fits, where `line` is how patterns fit the command line in an argument.
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
