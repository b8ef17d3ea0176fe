//! Command lines of a shell, as far as a rule must know them.
//!
//! The reader knows less than a shell does, and says so: what it does not know makes the line unclear, and an unclear line
//! is never allowed. Whatever it can find in such a line is still held against the rules that deny.

mod hazards;
mod inner;
mod reader;
mod word;

use self::word::Word;
use super::{Fit, paths, wildcard};

/// What a line runs.
#[derive(Debug, Default)]
pub(super) struct Line {
    pub(super) commands: Vec<Command>,
    /// False if some of it was not understood.
    pub(super) clear: bool,
}

/// A simple command, or a file that is written to: then the words are `>` and the file.
#[derive(Clone, Debug, Default)]
pub(super) struct Command {
    words: Vec<Word>,
    /// Variables are set for it, or for all that follow.
    assigns: bool,
    /// It runs what its arguments say.
    runs_others: bool,
    /// It may be run by another one, or may be mere text.
    pub(super) guess: bool,
}

/// Reads a line, and what is inside its commands.
pub(super) fn read(text: &str) -> Line {
    reader::read(text, 0)
}

impl Command {
    /// The program without its directory, if it is known.
    fn program(&self) -> Option<&str> {
        let first = self.words.first().filter(|word| word.exact)?;
        first.text.rsplit('/').next()
    }

    /// How the command fits a pattern that denies or asks: it does if it begins with these words, whatever the program's
    /// directory. If the words come later, or cannot be known, nobody can say.
    pub(super) fn begins_with(&self, pattern: &str, root: Option<&str>) -> Fit {
        let wanted: Vec<&str> = pattern.split_whitespace().collect();
        let Some((first, rest)) = wanted.split_first() else { return Fit::No };
        let Some(word) = self.words.first() else { return Fit::No };
        if let (true, [target]) = (*first == ">", rest) {
            return match self.words.as_slice() {
                [sign, file] if sign.text == ">" && !file.exact => Fit::Unclear,
                [sign, file] if sign.text == ">" => paths::fit(&file.text, &[(*target).to_owned()], root),
                _ => Fit::No,
            };
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
        let args = &self.words[1..];
        let same = |(wanted, word): (&&str, &Word)| word.exact && wildcard::fits(wanted, &word.text, None);
        if rest.len() <= args.len() && rest.iter().zip(args).all(same) {
            return Fit::Yes;
        }
        let mut left = args.iter();
        let later = rest.iter().all(|wanted| left.any(|word| !word.exact || same((wanted, word))));
        if later { Fit::Unclear } else { Fit::No }
    }

    /// True if a pattern that allows covers the command: it begins with these very words, and what follows neither hides
    /// anything nor makes the program write, delete or run something that the pattern does not name.
    pub(super) fn is_covered(&self, pattern: &str, root: Option<&str>) -> bool {
        let wanted: Vec<&str> = pattern.split_whitespace().collect();
        if wanted.is_empty() || self.guess || self.assigns || wanted.len() > self.words.len() {
            return false;
        }
        if self.words[0].text == ">" || wanted[0] == ">" {
            return self.begins_with(pattern, root) == Fit::Yes;
        }
        let named = |(wanted, word): (&&str, &Word)| word.exact && *wanted == word.text;
        if self.runs_others {
            return wanted.len() == self.words.len() && wanted.iter().zip(&self.words).all(named);
        }
        let begins = wanted.iter().zip(&self.words).all(|(w, word)| word.exact && wildcard::fits(w, &word.text, None));
        let rest = self.words.iter().enumerate().skip(1);
        let mut others = rest.filter(|(i, word)| !wanted.get(*i).is_some_and(|w| named((w, word))));
        begins && others.all(|(_, word)| word.tame && !hazards::is_hazard(&self.words, word))
    }
}
