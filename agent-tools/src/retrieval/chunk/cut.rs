//! How good it is to cut before a line.

/// From bad to good.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Cut {
    /// Within a fence or a table: only if it does not fit.
    Never,
    /// Within a line, or between a heading and its text.
    Poor,
    /// Between two lines.
    #[default]
    Line,
    /// Where a paragraph begins.
    Paragraph,
    /// Where something new begins: a section, or an item of a program.
    Section,
}

/// What is known of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Mark {
    /// Of a cut before it.
    pub(super) cut: Cut,
    /// The place of the headings that it stands below.
    pub(super) path: usize,
}

pub(super) fn is_blank(line: &str) -> bool {
    line.trim().is_empty()
}

/// Blank lines stay with what is before them.
pub(super) fn between(before: Option<&str>, line: &str) -> Cut {
    match before {
        _ if is_blank(line) => Cut::Poor,
        Some(before) if is_blank(before) => Cut::Paragraph,
        _ => Cut::Line,
    }
}

/// A text of paragraphs.
pub(super) fn paragraphs(lines: &[&str]) -> Vec<Mark> {
    let before = std::iter::once(None).chain(lines.iter().copied().map(Some));
    before.zip(lines).map(|(before, line)| Mark { cut: between(before, line), path: 0 }).collect()
}
