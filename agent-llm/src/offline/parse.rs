//! Parsing of tool results in the usual formats.

/// A line found by a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Hit {
    pub(super) path: String,
    pub(super) line: Line,
}

/// A line of a text, with its number if known.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Line {
    pub(super) number: Option<u32>,
    pub(super) text: String,
}

impl Line {
    pub(super) fn new(number: Option<u32>, text: &str) -> Self {
        Self { number, text: text.trim_end().to_owned() }
    }
}

/// Parses search results: `path:line: text` per line, or a path followed by numbered lines.
pub(super) fn hits(text: &str) -> Vec<Hit> {
    let mut hits = Vec::new();
    let mut heading = None;
    for line in text.lines() {
        if let Some((path, number, text)) = path_and_line(line) {
            hits.push(Hit { path: path.to_owned(), line: Line::new(Some(number), text) });
        } else if let (Some(path), Some((number, text))) = (heading, numbered(line)) {
            hits.push(Hit { path: String::from(path), line: Line::new(Some(number), text) });
        } else if let Some(path) = as_path(line) {
            heading = Some(path);
        }
    }
    hits
}

/// Parses the lines of a file: numbered by the tool, or else counted from `first`.
pub(super) fn lines(text: &str, first: u32) -> Vec<Line> {
    let numbered: Vec<_> = text.lines().filter_map(numbered).map(|(n, text)| Line::new(Some(n), text)).collect();
    if !numbered.is_empty() {
        return numbered;
    }
    (first..).zip(text.lines()).map(|(n, text)| Line::new(Some(n), text)).collect()
}

/// Parses a file list: one path per line, optionally with a note in brackets, or names indented
/// below their folders.
pub(super) fn paths(text: &str) -> Vec<String> {
    let mut folders: Vec<(usize, &str)> = Vec::new();
    let mut paths = Vec::new();
    for line in text.lines() {
        let name = line.trim_start_matches(|c: char| c.is_whitespace() || "│├└─|`-*".contains(c));
        let depth = line.chars().count() - name.chars().count();
        let name = name.split_once(" (").map_or(name, |(name, _)| name).trim_end();
        while folders.last().is_some_and(|(above, _)| *above >= depth) {
            folders.pop();
        }
        if name.ends_with('/') {
            folders.push((depth, name));
        } else if let Some(name) = as_path(name) {
            paths.push(folders.iter().map(|(_, folder)| *folder).chain([name]).collect());
        }
    }
    paths
}

/// Parses `path:12: text`, `path:12:3: text`, `path:12-text`.
fn path_and_line(line: &str) -> Option<(&str, u32, &str)> {
    line.match_indices(':').find_map(|(at, _)| {
        let (path, rest) = (&line[..at], &line[at + 1..]);
        let (number, rest) = leading_number(rest)?;
        let text = rest.strip_prefix([':', '-'])?;
        let text = leading_number(text).and_then(|(_, rest)| rest.strip_prefix(':')).unwrap_or(text);
        let is_path = !path.is_empty() && (!path.contains(' ') || path.contains(['/', '.']));
        is_path.then(|| (path.trim_start_matches("./"), number, text.strip_prefix(' ').unwrap_or(text)))
    })
}

/// Parses `  12| text`, `12: text`, or the same with a tab or an arrow.
fn numbered(line: &str) -> Option<(u32, &str)> {
    let (number, rest) = leading_number(line.trim_start())?;
    let text = rest.trim_start_matches(' ').strip_prefix(['|', ':', '\t', '→'])?;
    Some((number, text.strip_prefix(' ').unwrap_or(text)))
}

fn leading_number(text: &str) -> Option<(u32, &str)> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    Some((text[..digits].parse().ok()?, &text[digits..]))
}

fn as_path(line: &str) -> Option<&str> {
    let path = line.trim().trim_start_matches("./");
    let is_path = path.contains(['/', '.']) && !path.contains(char::is_whitespace) && !path.ends_with(['/', '.', ':']);
    is_path.then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hit(path: &str, number: u32, text: &str) -> Hit {
        Hit { path: path.to_owned(), line: Line::new(Some(number), text) }
    }

    #[test]
    fn hits_are_read_in_every_usual_form() {
        let expected = [hit("src/a.rs", 12, "let x = 1;"), hit("b.md", 3, "time: 12:30")];
        assert_eq!(hits("src/a.rs:12: let x = 1;\nb.md:3:time: 12:30\n2 matches"), expected);
        assert_eq!(hits("./src/a.rs:12:5: let x = 1;\nb.md:3:1:time: 12:30"), expected);
        assert_eq!(hits("src/a.rs\n12:let x = 1;\n\nb.md\n3: time: 12:30"), expected);
        assert!(hits("No matches for 'x'.").is_empty());
    }

    #[test]
    fn the_tools_own_line_numbers_win() {
        let numbered = lines("a.rs, lines 11-12 of 40\n   11| fn a() {\n   12| }", 1);
        assert_eq!(numbered, [Line::new(Some(11), "fn a() {"), Line::new(Some(12), "}")]);
        assert_eq!(lines("fn a() {\n}", 11), numbered);
    }

    #[test]
    fn a_tree_and_a_list_name_the_same_files() {
        let expected = ["README.md", "src/lib.rs", "src/net/tls.rs"];
        assert_eq!(paths("README.md\nsrc/\n  lib.rs\n  net/\n    tls.rs\n"), expected);
        assert_eq!(paths("./README.md\nsrc/\nsrc/lib.rs\nsrc/net/tls.rs\n(3 files)"), expected);
        assert_eq!(paths("├── README.md\n└── src/\n    ├── lib.rs\n    └── net/\n        └── tls.rs"), expected);
        assert_eq!(paths("README.md (12 bytes)\nsrc/\nsrc/lib.rs (1 KiB)\nsrc/net/tls.rs"), expected);
        assert!(paths("No files found.").is_empty());
    }
}
