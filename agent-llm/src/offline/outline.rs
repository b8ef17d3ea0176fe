//! Headings of prose files.

use std::collections::{BTreeMap, HashMap};

use super::{kinds::is_prose, parse::Line};

/// Regular expression that matches heading lines.
pub(super) const HEADING: &str = "^#{1,6} ";

/// The title of a file is within its first lines. Further below, a single `#` begins a comment in
/// an example.
const TITLE: u32 = 5;

/// Known headings of files.
#[derive(Debug, Default)]
pub(super) struct Outline(HashMap<String, BTreeMap<u32, (usize, String)>>);

impl Outline {
    /// Records the line if it is a heading.
    pub(super) fn take(&mut self, path: &str, line: &Line) {
        let level = line.text.len() - line.text.trim_start_matches('#').len();
        let Some(number) = line.number.filter(|number| level > 1 || *number <= TITLE) else { return };
        if is_prose(path) && (1..=6).contains(&level) && line.text[level..].starts_with(' ') {
            let heading = (level, line.text[level..].trim().to_owned());
            self.0.entry(path.to_owned()).or_default().insert(number, heading);
        }
    }

    /// Returns the headings above a line, the file's title first.
    pub(super) fn above(&self, path: &str, line: u32) -> Vec<&str> {
        let mut open: Vec<(usize, &str)> = Vec::new();
        for (level, text) in self.0.get(path).into_iter().flat_map(|all| all.range(..=line)).map(|(_, heading)| heading)
        {
            open.retain(|(above, _)| above < level);
            open.push((*level, text));
        }
        open.into_iter().map(|(_, text)| text).collect()
    }

    /// Returns all headings of a file.
    pub(super) fn of(&self, path: &str) -> impl Iterator<Item = &str> {
        self.0.get(path).into_iter().flatten().map(|(_, (_, text))| text.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_stands_below_its_section_and_the_title() {
        let mut outline = Outline::default();
        let lines = ["# Title", "", "## One", "### Deep", "text", "## Two", "text", "# let hidden = 1;"];
        (1..).zip(lines).for_each(|(number, text)| outline.take("a.md", &Line::new(Some(number), text)));
        assert_eq!(outline.above("a.md", 5), ["Title", "One", "Deep"]);
        assert_eq!(outline.above("a.md", 9), ["Title", "Two"]);
        assert_eq!(outline.of("a.md").count(), 4);
        assert_eq!(outline.of("b.md").count(), 0);
    }
}
