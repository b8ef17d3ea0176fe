//! `edit_file` and `multi_edit`.

use agent_core::{
    Effect, Error, Result, Tool, ToolOptions, ToolOutput, ToolRequest, ToolSpec, async_trait, tool::Reconciled,
};
use schemars::JsonSchema;
use serde::{Deserialize, de::DeserializeOwned};

use super::{
    change::Change,
    files::{Files, shown},
    names,
    seen::Seen,
    text::count,
};
use crate::{blocking::blocking, schema};

/// Arguments of a tool that replaces texts in one file.
pub(super) trait Edits: DeserializeOwned + JsonSchema + Send + 'static {
    const NAME: &'static str;
    const DESCRIPTION: &'static str;

    fn path(&self) -> &str;

    /// Returns the changes in order: each applies to the result of the previous one.
    fn changes(&self) -> &[Change];
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct OneEdit {
    /// The file, relative to the root of the workspace.
    path: String,
    #[serde(flatten)]
    change: Change,
}

impl Edits for OneEdit {
    const NAME: &'static str = "edit_file";
    const DESCRIPTION: &'static str =
        "Replaces a text in a file. Give enough lines around it that it is there exactly once.";

    fn path(&self) -> &str {
        &self.path
    }

    fn changes(&self) -> &[Change] {
        std::slice::from_ref(&self.change)
    }
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct ManyEdits {
    /// The file, relative to the root of the workspace.
    path: String,
    /// The changes, in their order: each is made in what those before it left.
    #[schemars(length(min = 1))]
    edits: Vec<Change>,
}

impl Edits for ManyEdits {
    const NAME: &'static str = "multi_edit";
    const DESCRIPTION: &'static str = "Replaces several texts in one file: all of them, or none if one of them cannot be. Each must be there exactly once.";

    fn path(&self) -> &str {
        &self.path
    }

    fn changes(&self) -> &[Change] {
        &self.edits
    }
}

/// Appended to the output if the agent knew another content.
pub(super) const CHANGED: &str = " [it had changed since you read it]";

/// Replaces texts in a file.
pub(super) struct EditFile<E> {
    files: Files,
    edits: std::marker::PhantomData<fn() -> E>,
}

impl<E: Edits> EditFile<E> {
    pub(super) fn new(files: Files) -> Self {
        Self { files, edits: std::marker::PhantomData }
    }
}

#[async_trait]
impl<E: Edits> Tool for EditFile<E> {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new(E::NAME, E::DESCRIPTION, schema::of_arguments::<E>())
    }

    fn options(&self) -> ToolOptions {
        names::of_change(ToolOptions::default().effect(Effect::Reconcilable).serial())
    }

    async fn call(&self, req: ToolRequest) -> Result<ToolOutput> {
        let (files, edits) = (self.files.clone(), req.parse::<E>()?);
        blocking(move || apply(&files, &edits, &Seen::new(&files, &req.cx))).await.map(ToolOutput::text)
    }

    async fn reconcile(&self, req: ToolRequest) -> Result<Reconciled> {
        let (files, edits) = (self.files.clone(), req.parse::<E>()?);
        blocking(move || reconcile(&files, &edits)).await
    }
}

fn apply(files: &Files, edits: &impl Edits, seen: &Seen<'_>) -> Result<String> {
    let path = files.relative(edits.path())?;
    let _changing = files.changing();
    let before = files.read_text(&path)?;
    let (mut text, mut replaced, mut first) = (before.clone(), 0, None);
    for (number, change) in edits.changes().iter().enumerate() {
        let changed =
            change.apply(&text, &shown(&path), files.limits.file_bytes).map_err(|e| match edits.changes() {
                [_] => e,
                _ => Error::tool(format!("edit {}: {}; nothing was changed", number + 1, e.message())),
            })?;
        (text, replaced) = (changed.text, replaced + changed.count);
        first = first.or(Some(changed.line));
    }
    files.replace(&path, text.as_bytes())?;
    let note = if seen.is_outdated(&path, before.as_bytes()) { CHANGED } else { "" };
    seen.changed(&path, before.as_bytes(), text.as_bytes());
    let (replaced, line) = (count(replaced as u64, "replacement"), first.unwrap_or(1));
    Ok(format!("edited {}: {replaced} at line {line}{note}", shown(&path)))
}

/// Checks whether the edits were made: all or none, since the file is replaced as a whole.
fn reconcile(files: &Files, edits: &impl Edits) -> Result<Reconciled> {
    // A cancelled attempt may still be writing.
    let _changing = files.changing();
    let text = files.read_text(&files.relative(edits.path())?)?;
    let mut made = edits.changes().iter().map(|change| change.was_made(&text));
    Ok(match made.next() {
        Some(Reconciled::DidNot) if made.all(|one| one == Reconciled::DidNot) => Reconciled::DidNot,
        Some(Reconciled::Happened(_)) if made.all(|one| matches!(one, Reconciled::Happened(_))) => {
            Reconciled::Happened(ToolOutput::text(format!("edited {}", edits.path())))
        }
        _ => Reconciled::Unknown,
    })
}
