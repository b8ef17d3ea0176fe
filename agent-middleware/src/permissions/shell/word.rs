//! One word of a command.

/// A word as the program gets it, if that can be known.
#[derive(Clone, Debug, Default)]
pub(super) struct Word {
    /// With `$` where something else takes its place.
    pub(super) text: String,
    /// The text is what the program gets, to the letter.
    pub(super) exact: bool,
    /// It is one word, or several file names, and no option unless its text says so.
    pub(super) tame: bool,
}

/// A word while it is read.
#[derive(Debug, Default)]
pub(super) struct Draft {
    pub(super) text: String,
    /// File names may take its place.
    pub(super) glob: bool,
    /// Something in quotes takes its place, as one word.
    pub(super) filled: bool,
    /// Something takes its place that may be any number of words.
    pub(super) split: bool,
}

impl Draft {
    pub(super) fn finish(self) -> Word {
        let exact = !(self.glob || self.filled || self.split);
        let harmless_start = self.text.starts_with(|c: char| !matches!(c, '-' | '*' | '?' | '[' | '$'));
        Word { exact, tame: exact || (!self.split && harmless_start), text: self.text }
    }
}
