//! Cut points in Markdown, and heading paths of lines.

use super::cut::{Cut, Mark, between, is_blank};

/// Returns a mark for each line, and the heading paths that the marks refer to.
pub(super) fn marks(lines: &[&str]) -> (Vec<Mark>, Vec<Vec<String>>) {
    let mut reading = Reading::default();
    let mut marks = Vec::with_capacity(lines.len());
    for (at, line) in lines.iter().enumerate() {
        let before = at.checked_sub(1).map(|before| lines[before]);
        marks.push(reading.line(before, line, lines.get(at + 1).copied()));
    }
    (marks, reading.paths)
}

struct Reading {
    /// Open headings with their levels.
    open: Vec<(usize, String)>,
    paths: Vec<Vec<String>>,
    /// Delimiter of the open fence.
    fence: Option<String>,
    /// True from a heading to its first text.
    heads: bool,
}

impl Default for Reading {
    fn default() -> Self {
        Self { open: Vec::new(), paths: vec![Vec::new()], fence: None, heads: false }
    }
}

impl Reading {
    fn line(&mut self, before: Option<&str>, line: &str, after: Option<&str>) -> Mark {
        let cut = self.cut(before, line, after);
        Mark { cut, path: self.paths.len() - 1 }
    }

    fn cut(&mut self, before: Option<&str>, line: &str, after: Option<&str>) -> Cut {
        let headed = std::mem::take(&mut self.heads);
        if let Some(fence) = &self.fence {
            if line.trim_start().starts_with(fence.as_str()) && line.trim().trim_matches(['`', '~']).is_empty() {
                self.fence = None;
            }
            return Cut::Never;
        }
        if let Some((level, text)) = heading(line).or_else(|| underlined(before, line, after)) {
            self.enter(level, text);
            self.heads = true;
            // Consecutive headings belong together.
            return if headed { Cut::Poor } else { Cut::Section };
        }
        let is_table = |line: &str| line.trim_start().starts_with('|');
        let cut = match () {
            () if before.is_some_and(is_table) && is_table(line) => Cut::Never,
            () if before.is_some_and(|before| is_underline(before, line)) => Cut::Never,
            () if headed => Cut::Poor,
            () => between(before, line),
        };
        // Blank lines and a heading's underline may precede its text.
        self.heads = headed && (is_blank(line) || level_of_underline(line).is_some());
        self.fence = fence(line);
        cut
    }

    fn enter(&mut self, level: usize, text: String) {
        self.open.retain(|(above, _)| *above < level);
        self.open.push((level, text));
        self.paths.push(self.open.iter().map(|(_, text)| text.clone()).collect());
    }
}

/// Parses a heading that begins with `#`: level and text.
fn heading(line: &str) -> Option<(usize, String)> {
    let line = line.trim_end();
    let text = line.trim_start_matches('#');
    let level = line.len() - text.len();
    let is_heading = (1..=6).contains(&level) && (text.is_empty() || text.starts_with([' ', '\t']));
    is_heading.then(|| (level, text.trim().trim_end_matches('#').trim_end().to_owned()))
}

/// Parses a heading that the next line underlines.
fn underlined(before: Option<&str>, line: &str, after: Option<&str>) -> Option<(usize, String)> {
    let text = line.trim();
    let begins = before.is_none_or(is_blank) && !text.is_empty() && !text.starts_with(['|', '-', '>', '*', '`', '#']);
    let level = level_of_underline(after?)?;
    begins.then(|| (level, text.to_owned()))
}

fn level_of_underline(line: &str) -> Option<usize> {
    let line = line.trim_end();
    let all = |sign| line.len() > 1 && line.chars().all(|c| c == sign);
    if all('=') { Some(1) } else { all('-').then_some(2) }
}

/// Returns true for the underline of a heading.
fn is_underline(before: &str, line: &str) -> bool {
    level_of_underline(line).is_some() && !is_blank(before)
}

/// Returns the closing delimiter of the fence that a line opens.
fn fence(line: &str) -> Option<String> {
    let line = line.trim_start();
    let sign = line.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let length = line.chars().take_while(|c| *c == sign).count();
    // A line that closes its own delimiter opens no fence.
    let opens = length >= 3 && !(sign == '`' && line[length..].contains('`'));
    opens.then(|| sign.to_string().repeat(length))
}
