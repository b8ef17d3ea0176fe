//! One command of a line, and its matching against rules.

use super::{Fit, Policy, options, word::Word};
use crate::permissions::{paths, wildcard};

/// At the end of a pattern, matches any further arguments.
const ANY_ARGUMENTS: &str = "**";

/// A simple command, or the target of a redirection.
#[derive(Clone, Debug, Default)]
pub(super) struct Command {
    pub(super) does: Does,
    /// The program and its arguments, or the target that is opened.
    pub(super) words: Vec<Word>,
    /// It sets variables, for itself or for later commands.
    pub(super) assigns: bool,
    /// The line itself contains the program's input.
    pub(super) is_fed: bool,
    /// It runs other programs given in its arguments.
    pub(super) runs_others: bool,
    /// It may be run by another command, or may be mere text.
    pub(super) guess: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Does {
    #[default]
    Run,
    /// Opens a file for writing.
    Write,
    /// Opens a connection.
    Connect,
}

impl Command {
    /// Returns the program without its directory, if it is known.
    pub(super) fn program(&self) -> Option<&str> {
        let first = self.words.first().filter(|word| self.does == Does::Run && word.exact)?;
        first.text.rsplit('/').next()
    }

    pub(super) fn changes_directory(&self) -> bool {
        self.program().is_some_and(|program| ["cd", "popd", "pushd"].contains(&program))
    }

    /// Matches the command against the patterns of a rule; one of them must match.
    pub(super) fn fit(&self, policy: Policy, patterns: &[String], root: Option<&str>) -> Fit {
        let fits = patterns.iter().map(|pattern| {
            let wanted: Vec<&str> = pattern.split_whitespace().collect();
            match policy {
                Policy::Allow if self.is_covered(&wanted, root) => Fit::Yes,
                Policy::Allow => Fit::No,
                Policy::Ask | Policy::Deny => self.begins_with(&wanted, root),
            }
        });
        fits.max().unwrap_or(Fit::No)
    }

    /// Matches the command against a pattern that denies or asks: it matches if it begins with
    /// these words, ignoring the program's directory. The result is unclear if the words come
    /// later, or cannot be determined.
    fn begins_with(&self, wanted: &[&str], root: Option<&str>) -> Fit {
        let wanted = wanted.strip_suffix(&[ANY_ARGUMENTS]).unwrap_or(wanted);
        let ([first, rest @ ..], [word, args @ ..]) = (wanted, self.words.as_slice()) else { return Fit::No };
        if let (">", [target]) = (*first, rest) {
            return match self.does {
                Does::Run => Fit::No,
                Does::Write | Does::Connect if !word.exact => Fit::Unclear,
                Does::Write | Does::Connect => paths::fit(&word.text, &[(*target).to_owned()], root),
            };
        }
        if self.does != Does::Run {
            return Fit::No;
        }
        if !word.exact {
            return Fit::Unclear;
        }
        let program = self.program().unwrap_or_default().to_lowercase();
        let is_program =
            wildcard::fits(&first.to_lowercase(), &program, None) || wildcard::fits(first, &word.text, None);
        if !is_program {
            return Fit::No;
        }
        let same = |(wanted, word): (&&str, &Word)| word.exact && wildcard::fits(wanted, &word.text, None);
        if rest.len() <= args.len() && rest.iter().zip(args).all(same) {
            return Fit::Yes;
        }
        let mut left = args.iter();
        let later = rest.iter().all(|wanted| left.any(|word| !word.exact || same((wanted, word))));
        if later { Fit::Unclear } else { Fit::No }
    }

    /// Returns a pattern that covers the command and others that differ in their operands; `None` if
    /// no pattern can spell the command.
    pub(super) fn pattern(&self) -> Option<String> {
        let all = |words: &[Word]| Some(words.iter().map(Word::spelled).collect::<Option<Vec<_>>>()?.join(" "));
        match self.does {
            Does::Connect => None,
            Does::Write => Some(format!("> {}", all(&self.words)?)),
            Does::Run if self.runs_others => all(&self.words),
            Does::Run => {
                let (program, arguments) = (self.program()?, self.words.get(1..)?);
                let open = options::open(program, arguments).into_iter().max().map_or(0, |last| last + 1);
                let named = usize::from(arguments.first().is_some_and(|word| options::is_sub_command(program, word)));
                all(self.words.get(..=open.max(named))?)
            }
        }
    }

    /// True if a pattern that allows covers the command: it begins with exactly these words, and
    /// the remaining arguments hide nothing and are covered by the program's table entry, unless
    /// the pattern names them.
    fn is_covered(&self, wanted: &[&str], root: Option<&str>) -> bool {
        if self.guess || self.assigns {
            return false;
        }
        match self.does {
            Does::Connect => return false,
            Does::Write => return self.begins_with(wanted, root) == Fit::Yes,
            Does::Run => {}
        }
        let (wanted, any_arguments) = match wanted.strip_suffix(&[ANY_ARGUMENTS]) {
            Some(before) => (before, true),
            None => (wanted, false),
        };
        let begins = |(wanted, word): (&&str, &Word)| word.exact && wildcard::fits(wanted, &word.text, None);
        if wanted.is_empty() || wanted.len() > self.words.len() || !wanted.iter().zip(&self.words).all(begins) {
            return false;
        }
        let is_named = |i: usize| wanted.get(i).is_some_and(|wanted| *wanted == self.words[i].text);
        if any_arguments {
            true
        } else if self.runs_others {
            wanted.len() == self.words.len() && (0..wanted.len()).all(is_named) && !self.is_fed
        } else {
            options::open(self.program().unwrap_or_default(), &self.words[1..]).into_iter().all(|i| is_named(i + 1))
        }
    }
}
