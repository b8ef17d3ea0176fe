//! [`Change`]: replacement of one text by another.

use agent_core::{Error, Result, tool::Reconciled};
use schemars::JsonSchema;
use serde::Deserialize;

/// Maximum of matches that are listed with their lines.
const MOST_LINES: usize = 5;

/// A text that takes the place of another in a file.
#[derive(Deserialize, JsonSchema)]
pub(super) struct Change {
    /// The text to replace, with the exact characters of the file, without line numbers. It must occur exactly once.
    pub(super) old_text: String,
    /// The text to put in its place.
    pub(super) new_text: String,
    /// Replaces it wherever it is.
    #[serde(default)]
    pub(super) replace_all: bool,
}

/// Text after a change.
pub(super) struct Changed {
    pub(super) text: String,
    /// Number of replacements, and line of the first.
    pub(super) count: usize,
    pub(super) line: usize,
}

impl Change {
    /// Applies the change to the text of the file `shown`; `most` is the maximum file size in
    /// bytes.
    pub(super) fn apply(&self, text: &str, shown: &str, most: u64) -> Result<Changed> {
        if self.old_text.is_empty() {
            return Err(Error::tool("old_text is empty: say which text to replace, or use write_file"));
        }
        if self.old_text == self.new_text {
            return Err(Error::tool("old_text and new_text are the same: nothing would change"));
        }
        let (old, new) = self.with_line_ends_of(text);
        let matches = Matches::of(&old, text);
        match matches.count {
            0 => return Err(Error::tool(format!("old_text is not in '{shown}'{}", hint(text, &old)))),
            1 => {}
            _ if self.replace_all => {}
            many => {
                return Err(Error::tool(format!(
                    "old_text is in '{shown}' {many} times, at lines {}: add lines around the one that is meant, or set replace_all",
                    matches.shown_lines()
                )));
            }
        }
        // The size is computed first: many matches of a short text may need more than the available
        // memory.
        let bytes =
            (matches.count as u64 * new.len() as u64).saturating_add((text.len() - matches.count * old.len()) as u64);
        if bytes > most {
            return Err(Error::tool(format!(
                "'{shown}' cannot be used: it has {bytes} bytes, more than the limit of {most}"
            )));
        }
        Ok(Changed { text: text.replace(&old, &new), count: matches.count, line: matches.first_lines[0] })
    }

    /// Decides from the file's text whether the change was made; if both are possible, it does not
    /// guess.
    pub(super) fn was_made(&self, text: &str) -> Reconciled {
        let (old, new) = self.with_line_ends_of(text);
        let has_new = !new.is_empty() && text.contains(&new);
        match text.contains(&old) {
            // A changed file contains the new text.
            true if !new.is_empty() && !has_new => Reconciled::DidNot,
            false if has_new => Reconciled::Happened(agent_core::ToolOutput::default()),
            _ => Reconciled::Unknown,
        }
    }

    /// Converts the two texts to the line endings of a file with `\r\n`, which a model does not
    /// see.
    fn with_line_ends_of(&self, text: &str) -> (String, String) {
        let (old, new) = (&self.old_text, &self.new_text);
        // A file may mix line endings.
        let is_there = old.contains('\n') && text.contains(old);
        if is_there || old.contains('\r') || !text.contains("\r\n") {
            return (old.clone(), new.clone());
        }
        (old.replace('\n', "\r\n"), new.replace("\r\n", "\n").replace('\n', "\r\n"))
    }
}

/// Matches of a text in another.
struct Matches {
    count: usize,
    /// Lines of the first matches, counted from 1.
    first_lines: Vec<usize>,
}

impl Matches {
    fn of(wanted: &str, text: &str) -> Self {
        let mut matches = Self { count: 0, first_lines: Vec::new() };
        let (mut line, mut counted) = (1, 0);
        for (at, _) in text.match_indices(wanted) {
            matches.count += 1;
            if matches.count <= MOST_LINES {
                line += newlines(&text[counted..at]);
                counted = at;
                matches.first_lines.push(line);
            }
        }
        matches
    }

    fn shown_lines(&self) -> String {
        let lines: Vec<_> = self.first_lines.iter().map(usize::to_string).collect();
        match self.count - lines.len() {
            0 => lines.join(", "),
            more => format!("{} and {more} more", lines.join(", ")),
        }
    }
}

fn newlines(text: &str) -> usize {
    text.bytes().filter(|b| *b == b'\n').count()
}

/// Returns a hint about the reason why a text was not found.
fn hint(text: &str, old: &str) -> String {
    let numbered = |line: &str| line.trim_start().split_once("| ").is_some_and(|(n, _)| n.parse::<usize>().is_ok());
    if old.lines().all(numbered) {
        return ": leave out the line numbers that read_file shows".to_owned();
    }
    // Each line begins with a line feed and the last one is followed by one, so that only whole
    // lines match.
    let trimmed = |text: &str| text.lines().map(str::trim).fold("\n".to_owned(), |all, line| all + line + "\n");
    let (lines, wanted) = (trimmed(text), trimmed(old));
    match lines.find(&wanted) {
        Some(at) => {
            let line = newlines(&lines[..at]) + 1;
            format!(": it is at line {line} with other white space; read the file again and copy it exactly")
        }
        None => ": read the file again and copy it exactly".to_owned(),
    }
}
