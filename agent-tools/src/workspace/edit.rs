//! `edit_file`.

use agent_core::{
    Effect, Error, Result, Tool, ToolOptions, ToolOutput, ToolRequest, ToolSpec, async_trait, tool::Reconciled,
};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{
    files::{Files, shown},
    text::count,
};
use crate::{blocking::blocking, schema};

#[derive(Deserialize, JsonSchema)]
struct Edit {
    /// The file, relative to the root of the workspace.
    path: String,
    /// The text to replace, exactly as it stands in the file, without line numbers. It must be there exactly once.
    old_text: String,
    /// The text to put in its place.
    new_text: String,
    /// Replaces it wherever it is.
    #[serde(default)]
    replace_all: bool,
}

/// Replaces a text in a file.
pub(super) struct EditFile {
    files: Files,
}

impl EditFile {
    pub(super) fn new(files: Files) -> Self {
        Self { files }
    }
}

#[async_trait]
impl Tool for EditFile {
    fn spec(&self) -> ToolSpec {
        let description = "Replaces a text in a file. Give enough lines around it that it is there exactly once.";
        ToolSpec::new("edit_file", description, schema::of_arguments::<Edit>())
    }

    fn options(&self) -> ToolOptions {
        ToolOptions::default().effect(Effect::Reconcilable).serial()
    }

    async fn call(&self, req: ToolRequest) -> Result<ToolOutput> {
        let (files, edit) = (self.files.clone(), req.parse::<Edit>()?);
        blocking(move || edit.apply(&files)).await.map(ToolOutput::text)
    }

    async fn reconcile(&self, req: ToolRequest) -> Result<Reconciled> {
        let (files, edit) = (self.files.clone(), req.parse::<Edit>()?);
        blocking(move || edit.reconcile(&files)).await
    }
}

impl Edit {
    fn apply(&self, files: &Files) -> Result<String> {
        if self.old_text.is_empty() {
            return Err(Error::tool("old_text is empty: say which text to replace, or use write_file"));
        }
        if self.old_text == self.new_text {
            return Err(Error::tool("old_text and new_text are the same: nothing would change"));
        }
        let path = files.relative(&self.path)?;
        let _changing = files.changing();
        let text = self.read(files)?;
        let (old, new) = self.with_line_ends_of(&text);
        let matches = Matches::of(&old, &text);
        match matches.count {
            0 => return Err(Error::tool(format!("old_text is not in '{}'{}", shown(&path), hint(&text, &old)))),
            1 => {}
            _ if self.replace_all => {}
            many => {
                return Err(Error::tool(format!(
                    "old_text is in '{}' {many} times, at lines {}: add lines around the one that is meant, or set replace_all",
                    shown(&path),
                    matches.shown_lines()
                )));
            }
        }
        let added = matches.count as u64 * new.len() as u64;
        files.allow_size(&path, added.saturating_add((text.len() - matches.count * old.len()) as u64))?;
        files.replace(&path, text.replace(&old, &new).as_bytes())?;
        let replaced = count(matches.count as u64, "replacement");
        Ok(format!("edited {}: {replaced} at line {}", shown(&path), matches.first_lines[0]))
    }

    /// Judges by the file whether the edit was made; where both may be, it does not guess.
    fn reconcile(&self, files: &Files) -> Result<Reconciled> {
        let text = self.read(files)?;
        let (old, new) = self.with_line_ends_of(&text);
        let has_new = !new.is_empty() && text.contains(&new);
        Ok(match text.contains(&old) {
            // An edited file holds the new text.
            true if !new.is_empty() && !has_new => Reconciled::DidNot,
            false if has_new => Reconciled::Happened(ToolOutput::text(format!("edited {}", self.path))),
            _ => Reconciled::Unknown,
        })
    }

    fn read(&self, files: &Files) -> Result<String> {
        let path = files.relative(&self.path)?;
        let not_text = |_| Error::tool(format!("'{}' is not UTF-8 text: it cannot be edited", shown(&path)));
        String::from_utf8(files.read(&path)?).map_err(not_text)
    }

    /// The two texts as they stand in a file whose lines end with `\r\n`, which a model is not shown.
    fn with_line_ends_of(&self, text: &str) -> (String, String) {
        let (old, new) = (&self.old_text, &self.new_text);
        if text.contains(old) || old.contains('\r') || !text.contains("\r\n") {
            return (old.clone(), new.clone());
        }
        (old.replace('\n', "\r\n"), new.replace("\r\n", "\n").replace('\n', "\r\n"))
    }
}

/// How many matches are told by their lines.
const MOST_LINES: usize = 5;

/// Where a text stands in another.
struct Matches {
    count: usize,
    /// The lines at which the first ones begin, counted from 1.
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

/// Why a text may not have been found.
fn hint(text: &str, old: &str) -> String {
    let numbered = |line: &str| line.trim_start().split_once("| ").is_some_and(|(n, _)| n.parse::<usize>().is_ok());
    if old.lines().all(numbered) {
        return ": leave out the line numbers that read_file shows".to_owned();
    }
    // Each line begins with a line feed and the last one is followed by one: what is found is whole lines.
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
