//! `edit_file`.

use agent_core::{
    Effect, Error, Reconciled, Result, Tool, ToolOptions, ToolOutput, ToolRequest, ToolSpec, async_trait,
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
        let places: Vec<_> = text.match_indices(&old).map(|(at, _)| line_of(&text, at)).collect();
        match places[..] {
            [] => return Err(Error::tool(format!("old_text is not in '{}'{}", shown(&path), hint(&text, &old)))),
            [_] => {}
            _ if self.replace_all => {}
            _ => {
                let lines: Vec<_> = places.iter().map(usize::to_string).collect();
                return Err(Error::tool(format!(
                    "old_text is in '{}' {} times, at lines {}: add lines around the one that is meant, or set replace_all",
                    shown(&path),
                    places.len(),
                    lines.join(", ")
                )));
            }
        }
        files.replace(&path, text.replace(&old, &new).as_bytes())?;
        Ok(format!("edited {}: {} at line {}", shown(&path), count(places.len() as u64, "replacement"), places[0]))
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

fn line_of(text: &str, at: usize) -> usize {
    text[..at].matches('\n').count() + 1
}

/// Why a text may not have been found.
fn hint(text: &str, old: &str) -> String {
    let numbered = |line: &str| line.trim_start().split_once("| ").is_some_and(|(n, _)| n.parse::<usize>().is_ok());
    if old.lines().all(numbered) {
        return ": leave out the line numbers that read_file shows".to_owned();
    }
    let trimmed = |text: &str| text.lines().map(|line| line.trim().to_owned()).collect::<Vec<_>>();
    let (lines, wanted) = (trimmed(text), trimmed(old));
    match lines.windows(wanted.len().max(1)).position(|window| window == wanted) {
        Some(i) => format!(": it is at line {} with other white space; read the file again and copy it exactly", i + 1),
        None => ": read the file again and copy it exactly".to_owned(),
    }
}
