//! Quality of a cut before a line.

/// Quality of a cut, in ascending order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Cut {
    /// Within a fence or a table: only if it does not fit otherwise.
    Never,
    /// Within a line, or between a heading and its text.
    Poor,
    /// Between two lines.
    #[default]
    Line,
    /// At the start of a paragraph.
    Paragraph,
    /// At the start of a section, or of an item of a program.
    Section,
}

/// Properties of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Mark {
    /// Quality of a cut before the line.
    pub(super) cut: Cut,
    /// Index of the headings that the line is below.
    pub(super) path: usize,
}

pub(super) fn is_blank(line: &str) -> bool {
    line.trim().is_empty()
}

/// Rates the cut between two lines. Blank lines stay with the preceding text.
pub(super) fn between(before: Option<&str>, line: &str) -> Cut {
    match before {
        _ if is_blank(line) => Cut::Poor,
        Some(before) if is_blank(before) => Cut::Paragraph,
        _ => Cut::Line,
    }
}

/// Marks the lines of plain text with paragraphs.
pub(super) fn paragraphs(lines: &[&str]) -> Vec<Mark> {
    let before = std::iter::once(None).chain(lines.iter().copied().map(Some));
    before.zip(lines).map(|(before, line)| Mark { cut: between(before, line), path: 0 }).collect()
}
