//! Cut points in source code: by indentation, in any language.

use super::cut::{Cut, Mark, between, is_blank};

/// Marks each unindented line after a blank line, or after the end of another item, as the start of
/// an item.
pub(super) fn marks(lines: &[&str]) -> Vec<Mark> {
    let mut marks = Vec::with_capacity(lines.len());
    let mut before: Option<&str> = None;
    for line in lines {
        let begins = is_top(line) && before.is_some_and(|before| is_blank(before) || closes(before));
        let cut = match begins {
            true => Cut::Section,
            false if closes(line) => Cut::Poor, // stays with the line that it closes
            false => between(before, line),
        };
        marks.push(Mark { cut, path: 0 });
        before = Some(line);
    }
    marks
}

fn is_top(line: &str) -> bool {
    !is_blank(line) && !line.starts_with(char::is_whitespace) && !closes(line)
}

/// Returns true for a line that only closes something: `}`, `});`, `end`.
fn closes(line: &str) -> bool {
    let line = line.trim();
    line == "end" || (line.starts_with(['}', ')', ']']) && !line.chars().any(char::is_alphanumeric))
}
