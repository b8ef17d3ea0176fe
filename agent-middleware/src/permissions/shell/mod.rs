//! Shell command lines, analysed as far as rules need it.
//!
//! A parser reads the line, and this module evaluates the syntax tree: which programs run with
//! which arguments, and which files are opened. A line is unclear if the parser rejects it, if
//! shells interpret it differently, or if it depends on run-time values. An unclear line is never
//! allowed, but the commands found in it are still matched against rules that deny.

mod command;
mod inner;
mod options;
mod programs;
mod reader;
mod syntax;
mod word;

use std::collections::BTreeSet;

use serde_json::{Value, json};

use self::command::{Command, Does};
use super::{Fit, Match, Permissions, Policy, Rule, Ruling};

/// Commands and opened files of a line.
#[derive(Debug, Default)]
struct Line {
    commands: Vec<Command>,
    /// False if part of the line could not be interpreted.
    clear: bool,
}

/// Reads a line, including nested commands.
fn read(text: &str) -> Line {
    let mut line = reader::read(text, 0);
    if line.commands.iter().any(Command::changes_directory) {
        // After a change of directory, the target of a relative path is unknown.
        let written = line.commands.iter_mut().filter(|command| command.does == Does::Write);
        written.flat_map(|command| &mut command.words).for_each(|file| file.exact &= file.text.starts_with('/'));
    }
    line
}

/// Returns patterns of [`Match::Command`] that cover the line and others like it: of each command,
/// the program with its sub-command and the arguments that a rule must spell out. Returns `None` if
/// no pattern covers the line.
pub(crate) fn covering(text: &str) -> Option<Vec<String>> {
    let line = read(text);
    let patterns = line.commands.iter().filter(|command| !command.guess).map(Command::pattern);
    let mut patterns = patterns.collect::<Option<Vec<_>>>()?;
    patterns.sort_unstable();
    patterns.dedup();
    let rule = Rule::allow("*").with_match("line", Match::Command(patterns.clone()));
    let allowed = Permissions::new().rule(rule).decide("", &json!({"line": text})).policy == Policy::Allow;
    (allowed && !patterns.is_empty()).then_some(patterns)
}

impl Permissions {
    /// Returns the decision about the command lines among the arguments: the strictest one about
    /// any of their commands. Returns `None` if no rule concerns a command line, or the lines are
    /// empty.
    pub(super) fn decide_lines(&self, rules: &[(usize, &Rule)], arguments: &Value) -> Option<Ruling> {
        let wanted = rules.iter().flat_map(|(_, rule)| &rule.when);
        let lines = wanted.filter(|(_, wanted)| matches!(wanted, Match::Command(_))).map(|(argument, _)| argument);
        let lines: BTreeSet<&String> = lines.collect();
        let rulings = lines.into_iter().flat_map(|argument| self.rulings(rules, arguments, argument));
        rulings.max_by_key(|ruling| (ruling.policy, ruling.of_arguments))
    }

    /// Returns the decision about each command of the line in `argument`.
    fn rulings(&self, rules: &[(usize, &Rule)], arguments: &Value, argument: &str) -> Vec<Ruling> {
        let line = arguments[argument].as_str().map(read).unwrap_or_default();
        let of_command = |command: &Command| {
            let fit = |rule: &Rule, of: &str, patterns: &[String]| {
                if of == argument { command.fit(rule.policy, patterns, self.root.as_deref()) } else { Fit::No }
            };
            match self.strictest(rules, arguments, fit) {
                // Possible text is matched against the rules, but the default does not apply to it.
                None if command.guess => Ruling { policy: Policy::Allow, why: String::new(), of_arguments: false },
                found => found.unwrap_or_else(|| self.otherwise_ruling()),
            }
        };
        let mut rulings: Vec<_> = line.commands.iter().map(of_command).collect();
        if !line.clear {
            let fit = |_: &Rule, of: &str, _: &[String]| if of == argument { Fit::Unclear } else { Fit::No };
            let found = self.strictest(rules, arguments, fit).unwrap_or_else(|| self.otherwise_ruling());
            let why = "the command line is not understood".to_owned();
            rulings.push(Ruling { policy: found.policy.max(Policy::Ask), why, ..found });
        }
        rulings
    }
}
