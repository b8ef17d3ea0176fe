//! One word of a command.

/// A word as the program gets it, if that can be known.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Word {
    pub(super) text: String,
    /// The text is what the program gets, to the letter.
    pub(super) exact: bool,
    /// It is one word, or several file names, and no option unless its text says so.
    pub(super) tame: bool,
    /// Nothing in it is quoted or escaped: it may be a word of the shell's own language.
    pub(super) plain: bool,
}

/// A word while it is read.
#[derive(Debug, Default)]
pub(super) struct Draft {
    pub(super) text: String,
    pub(super) quoted: bool,
    /// File names may take its place.
    pub(super) glob: bool,
    /// Something in quotes takes its place, as one word.
    pub(super) filled: bool,
    /// Something takes its place that may be any number of words.
    pub(super) split: bool,
}

impl Word {
    /// A word that is known.
    pub(super) fn literal(text: impl Into<String>) -> Self {
        Self { text: text.into(), exact: true, tame: true, plain: false }
    }

    /// A word of which nothing is known.
    pub(super) fn unknown() -> Self {
        Self::default()
    }
}

impl Draft {
    pub(super) fn finish(self) -> Word {
        let exact = !(self.glob || self.filled || self.split);
        let harmless_start = self.text.starts_with(|c: char| !matches!(c, '-' | '*' | '?' | '[' | '$'));
        Word { exact, tame: exact || (!self.split && harmless_start), plain: !self.quoted && exact, text: self.text }
    }
}
