//! One rule.

use std::collections::BTreeMap;

use agent_core::canonical_json;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Fit, Policy, paths, shell::Command, wildcard};

/// What is done about the calls that it fits.
///
/// All that it says must hold: the tool's name, the arguments one by one. See [`Permissions`](super::Permissions) for how
/// several rules go together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Match {
    /// A path, or a list of them, after `.` and `..` are taken out. In a pattern `*` and `?` stop at a `/`, and `**` does
    /// not. A pattern that begins with `/` is for absolute paths. To allow, all paths of a list must fit; else one is enough.
    Path(Vec<String>),
    /// A command line: the words that a command begins with, in which `*` and `?` stand for characters of one word.
    /// `> PATH` is a file that is written to.
    ///
    /// To deny or ask, the program's directory does not matter. To allow, the words must be those, and options that make a
    /// known program write, delete or run something must be among them; a program that runs others (`env`, `sudo`, `xargs`,
    /// an interpreter) is allowed by the whole of its words alone.
    Command(Vec<String>),
    /// Text, with `*` for any number of characters and `?` for one; other values are compared as JSON text.
    Text(Vec<String>),
}

/// A part of a call that is judged by itself.
#[derive(Debug)]
pub(super) enum Unit<'a> {
    /// All of it: there is no command line.
    Call,
    /// A command in the line in `argument`.
    Command { argument: &'a str, command: Command },
    /// What is not understood in the line in `argument`.
    Unclear { argument: &'a str },
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
        let (argument, pattern) = (argument.into(), pattern.into());
        match (self.when.get_mut(&argument), kind(Vec::new())) {
            (Some(Match::Path(patterns)), Match::Path(_))
            | (Some(Match::Command(patterns)), Match::Command(_))
            | (Some(Match::Text(patterns)), Match::Text(_)) => patterns.push(pattern),
            _ => drop(self.when.insert(argument, kind(vec![pattern]))),
        }
        self
    }

    pub(super) fn names(&self, tool: &str) -> bool {
        wildcard::fits(&self.tool, tool, None)
    }

    /// The arguments that it takes for command lines.
    pub(super) fn command_arguments(&self) -> impl Iterator<Item = &str> {
        let lines = self.when.iter().filter(|(_, wanted)| matches!(wanted, Match::Command(_)));
        lines.map(|(argument, _)| argument.as_str())
    }

    /// How this part of a call with these arguments fits.
    pub(super) fn fit(&self, arguments: &Value, unit: &Unit<'_>, root: Option<&str>) -> Fit {
        if self.arguments.as_ref().is_some_and(|wanted| canonical_json(wanted) != canonical_json(arguments)) {
            return Fit::No;
        }
        let fits = self.when.iter().map(|(argument, wanted)| match wanted {
            Match::Path(patterns) => self.fit_paths(arguments.get(argument), patterns, root),
            Match::Command(patterns) => self.fit_command(argument, patterns, unit, root),
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

    fn fit_command(&self, argument: &str, patterns: &[String], unit: &Unit<'_>, root: Option<&str>) -> Fit {
        match unit {
            Unit::Call => Fit::No,
            Unit::Unclear { argument: of } => {
                if *of == argument {
                    Fit::Unclear
                } else {
                    Fit::No
                }
            }
            Unit::Command { argument: of, .. } if *of != argument => Fit::No,
            Unit::Command { command, .. } if self.policy == Policy::Allow => {
                let covers = patterns.iter().any(|pattern| command.is_covered(pattern, root));
                if covers { Fit::Yes } else { Fit::No }
            }
            Unit::Command { command, .. } => {
                let fits = patterns.iter().map(|pattern| command.begins_with(pattern, root));
                fits.max().unwrap_or(Fit::No)
            }
        }
    }
}

fn fit_text(value: Option<&Value>, patterns: &[String]) -> Fit {
    let Some(value) = value else { return Fit::No };
    let text = value.as_str().map_or_else(|| canonical_json(value), str::to_owned);
    if patterns.iter().any(|pattern| wildcard::fits(pattern, &text, None)) { Fit::Yes } else { Fit::No }
}
