//! Command lines of a shell, as far as a rule must know them.
//!
//! A parser reads the line, and what is here judges the tree: which programs run with which arguments, and what is opened.
//! What the parser refuses, what shells read in different ways, and what nobody can know beforehand makes the line unclear,
//! and an unclear line is never allowed. Whatever is found in such a line is still held against the rules that deny.

mod command;
mod inner;
mod options;
mod programs;
mod reader;
mod syntax;
mod word;

use std::collections::BTreeSet;

use serde_json::Value;

use self::command::{Command, Does};
use super::{Fit, Match, Permissions, Policy, Rule, Ruling};

/// What a line runs and opens.
#[derive(Debug, Default)]
struct Line {
    commands: Vec<Command>,
    /// False if some of it was not understood.
    clear: bool,
}

/// Reads a line, and what is inside its commands.
fn read(text: &str) -> Line {
    let mut line = reader::read(text, 0);
    if line.commands.iter().any(Command::changes_directory) {
        // From then on nobody can say where a relative path leads.
        let written = line.commands.iter_mut().filter(|command| command.does == Does::Write);
        written.flat_map(|command| &mut command.words).for_each(|file| file.exact &= file.text.starts_with('/'));
    }
    line
}

impl Permissions {
    /// What is to be done about the command lines among the arguments: the strictest that is said of any command in them.
    /// None if no rule looks at a line, or there is nothing in it.
    pub(super) fn decide_lines(&self, rules: &[(usize, &Rule)], arguments: &Value) -> Option<Ruling> {
        let wanted = rules.iter().flat_map(|(_, rule)| &rule.when);
        let lines = wanted.filter(|(_, wanted)| matches!(wanted, Match::Command(_))).map(|(argument, _)| argument);
        let lines: BTreeSet<&String> = lines.collect();
        let rulings = lines.into_iter().flat_map(|argument| self.rulings(rules, arguments, argument));
        rulings.max_by_key(|ruling| ruling.policy)
    }

    /// What is said of each command of the line in `argument`.
    fn rulings(&self, rules: &[(usize, &Rule)], arguments: &Value, argument: &str) -> Vec<Ruling> {
        let line = arguments[argument].as_str().map(read).unwrap_or_default();
        let of_command = |command: &Command| {
            let fit = |rule: &Rule, of: &str, patterns: &[String]| {
                if of == argument { command.fit(rule.policy, patterns, self.root.as_deref()) } else { Fit::No }
            };
            match self.strictest(rules, arguments, fit) {
                // What may be mere text is held against the rules, and not against the default.
                None if command.guess => Ruling { policy: Policy::Allow, why: String::new() },
                found => found.unwrap_or_else(|| self.otherwise_ruling()),
            }
        };
        let mut rulings: Vec<_> = line.commands.iter().map(of_command).collect();
        if !line.clear {
            let fit = |_: &Rule, of: &str, _: &[String]| if of == argument { Fit::Unclear } else { Fit::No };
            let found = self.strictest(rules, arguments, fit).map_or(self.default_policy, |found| found.policy);
            let why = "the command line is not understood".to_owned();
            rulings.push(Ruling { policy: found.max(Policy::Ask), why });
        }
        rulings
    }
}
