//! One word of a command.

/// A word as the program receives it, as far as that can be determined.
#[derive(Clone, Debug, Default)]
pub(super) struct Word {
    /// The text, with `$` in place of expansions.
    pub(super) text: String,
    /// True if the program receives exactly this text.
    pub(super) exact: bool,
    /// True if it is one word, or several file names, and not an option unless its text begins like
    /// one.
    pub(super) tame: bool,
    /// True if a variable or the output of a command replaces part of it.
    pub(super) expands: bool,
}

impl Word {
    /// The word as a pattern of a rule, if one can spell it.
    pub(super) fn spelled(&self) -> Option<&str> {
        let is_special = |c: char| c.is_whitespace() || c == '*' || c == '?';
        (self.exact && !self.text.is_empty() && !self.text.contains(is_special)).then_some(&self.text)
    }
}

/// A word while it is parsed.
#[derive(Debug, Default)]
pub(super) struct Draft {
    pub(super) text: String,
    /// File names may replace it.
    pub(super) glob: bool,
    /// A quoted expansion replaces part of it, within one word.
    pub(super) filled: bool,
    /// An unquoted expansion replaces part of it, with any number of words.
    pub(super) split: bool,
}

impl Draft {
    pub(super) fn finish(self) -> Word {
        let exact = !(self.glob || self.filled || self.split);
        let harmless_start = self.text.starts_with(|c: char| !matches!(c, '-' | '*' | '?' | '[' | '$'));
        let expands = self.filled || self.split;
        Word { exact, tame: exact || (!self.split && harmless_start), expands, text: self.text }
    }
}
