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
        Word { exact, tame: exact || (!self.split && harmless_start), text: self.text }
    }
}
