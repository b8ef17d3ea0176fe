//! `apply_patch`: changes to several files in the V4A format that models are trained on.

mod apply;
mod parse;

use std::path::{Path, PathBuf};

use agent_core::{
    Effect, Error, Result, Tool, ToolOptions, ToolOutput, ToolRequest, ToolSpec, async_trait, tool::Reconciled,
};
use schemars::JsonSchema;
use serde::Deserialize;

use self::parse::{Change, Chunk, parse};
use super::{
    edit::CHANGED,
    files::{Files, shown},
    seen::Seen,
};
use crate::{blocking::blocking, schema};

const DESCRIPTION: &str = "\
Changes files by a patch: all of it, or nothing if a part does not fit. Its form:
*** Begin Patch
*** Update File: src/a.rs
@@ fn main() {
     let unchanged = 1;
-    let old = 2;
+    let new = 2;
*** Add File: src/b.rs
+its only line
*** Delete File: src/c.rs
*** End Patch
Lines of an update begin with a space (unchanged), - or +. Give about three unchanged lines around each change; where they are not unique, name \
the function or class in a line that begins with @@. `*** Move to: PATH` after `*** Update File:` renames it. Paths are relative.";

#[derive(Deserialize, JsonSchema)]
struct PatchArgs {
    /// The patch, from `*** Begin Patch` to `*** End Patch`.
    input: String,
}

/// Applies a patch to files.
pub(super) struct ApplyPatch(pub(super) Files);

#[async_trait]
impl Tool for ApplyPatch {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new("apply_patch", DESCRIPTION, schema::of_arguments::<PatchArgs>())
    }

    fn options(&self) -> ToolOptions {
        ToolOptions::default().effect(Effect::Reconcilable).serial()
    }

    async fn call(&self, req: ToolRequest) -> Result<ToolOutput> {
        let (files, args) = (self.0.clone(), req.parse::<PatchArgs>()?);
        blocking(move || carry_out(&files, &parse(&args.input)?, &Seen::new(&files, &req.cx)))
            .await
            .map(ToolOutput::text)
    }

    async fn reconcile(&self, req: ToolRequest) -> Result<Reconciled> {
        let (files, args) = (self.0.clone(), req.parse::<PatchArgs>()?);
        blocking(move || reconcile(&files, &parse(&args.input)?)).await
    }
}

fn carry_out(files: &Files, changes: &[Change], seen: &Seen<'_>) -> Result<String> {
    let _changing = files.changing();
    // All changes are computed before any is written.
    let mut drafts = Drafts { files, seen, made: Vec::new() };
    let told = changes.iter().map(|change| drafts.take(change)).collect::<Result<Vec<_>>>()?;
    drafts.write()?;
    Ok(told.join("\n"))
}

/// Pending file contents; each part of a patch sees the result of the previous ones.
struct Drafts<'a> {
    files: &'a Files,
    seen: &'a Seen<'a>,
    made: Vec<Draft>,
}

struct Draft {
    path: PathBuf,
    /// Previous content, if the file existed.
    old: Option<String>,
    /// New content; `None` if the file is deleted.
    new: Option<String>,
    /// File whose permissions a new file copies.
    like: Option<PathBuf>,
}

impl Drafts<'_> {
    fn take(&mut self, change: &Change) -> Result<String> {
        match change {
            Change::Add { path, content } => {
                let path = self.files.relative(path)?;
                self.must_be_absent(&path)?;
                self.set(&path, Some(content.clone()), None)?;
                Ok(format!("created {}", shown(&path)))
            }
            Change::Delete { path } => {
                let path = self.files.relative(path)?;
                let text = self.files.read(&path)?;
                self.seen.check(&path, &text)?;
                self.set(&path, None, None)?;
                Ok(format!("removed {}", shown(&path)))
            }
            Change::Update { path, to, chunks } => {
                let path = self.files.relative(path)?;
                let before = self.text(&path)?;
                let (text, places) = apply::apply(&before, chunks, &shown(&path))?;
                let note = if self.seen.is_outdated(&path, before.as_bytes()) { CHANGED } else { "" };
                let lines = places.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
                let at = if lines.is_empty() { String::new() } else { format!(" at line {lines}") };
                match to.as_ref().map(|to| self.files.relative(to)).transpose()? {
                    Some(to) if to != path => {
                        self.must_be_absent(&to)?;
                        self.set(&to, Some(text), Some(path.clone()))?;
                        self.set(&path, None, None)?;
                        Ok(format!("moved {} to {}{at}{note}", shown(&path), shown(&to)))
                    }
                    _ => {
                        self.set(&path, Some(text), None)?;
                        Ok(format!("changed {}{at}{note}", shown(&path)))
                    }
                }
            }
        }
    }

    fn text(&self, path: &Path) -> Result<String> {
        match self.draft(path) {
            Some(Draft { new: Some(text), .. }) => Ok(text.clone()),
            Some(_) => Err(Error::tool(format!("'{}' is removed by the same patch", shown(path)))),
            None => self.files.read_text(path),
        }
    }

    fn must_be_absent(&self, path: &Path) -> Result<()> {
        let is_there = match self.draft(path) {
            Some(draft) => draft.new.is_some(),
            None => self.files.read_if_there(path)?.is_some(),
        };
        let taken = || Error::tool(format!("'{}' is there already: update it", shown(path)));
        if is_there { Err(taken()) } else { Ok(()) }
    }

    fn draft(&self, path: &Path) -> Option<&Draft> {
        self.made.iter().find(|draft| draft.path == path)
    }

    fn set(&mut self, path: &Path, new: Option<String>, like: Option<PathBuf>) -> Result<()> {
        self.files.allow_change(path)?;
        self.files.allow_size(path, new.as_ref().map_or(0, String::len) as u64)?;
        match self.made.iter_mut().find(|draft| draft.path == path) {
            Some(draft) => draft.new = new,
            None => {
                let old = self.files.read_if_there(path)?.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
                self.made.push(Draft { path: path.to_owned(), old, new, like });
            }
        }
        Ok(())
    }

    /// Writes the drafts. Deletions come last, so that no content is lost before.
    fn write(&self) -> Result<()> {
        let mut done = Vec::new();
        let (written, removed): (Vec<_>, Vec<_>) = self.made.iter().partition(|draft| draft.new.is_some());
        for draft in written.into_iter().chain(removed) {
            self.write_one(draft).map_err(|e| match done.is_empty() {
                true => e,
                false => Error::tool(format!("{}; before that was done: {}", e.message(), done.join(", "))),
            })?;
            done.push(shown(&draft.path));
        }
        Ok(())
    }

    fn write_one(&self, draft: &Draft) -> Result<()> {
        let Draft { path, old, new, like } = draft;
        match (new, old) {
            (None, None) => {}
            (None, Some(_)) => self.files.remove(path)?,
            (Some(new), old) => {
                self.files.replace_like(path, new.as_bytes(), like.as_deref())?;
                match old {
                    Some(old) => self.seen.changed(path, old.as_bytes(), new.as_bytes()),
                    None if like.is_none() => self.seen.wrote(path, new.as_bytes()),
                    None => {}
                }
            }
        }
        Ok(())
    }
}

/// Decides from the files whether the changes were made: each may look made, not made, or both.
fn reconcile(files: &Files, changes: &[Change]) -> Result<Reconciled> {
    // A cancelled attempt may still be writing.
    let _changing = files.changing();
    let (mut all_made, mut none_made) = (true, true);
    for change in changes {
        // An ambiguous change is no evidence for either.
        let (made, not_made) = looks(files, change)?;
        all_made &= made && !not_made;
        none_made &= not_made && !made;
    }
    Ok(match (all_made, none_made) {
        (true, false) => Reconciled::Happened(ToolOutput::text("the patch was applied")),
        (false, true) => Reconciled::DidNot,
        _ => Reconciled::Unknown,
    })
}

fn looks(files: &Files, change: &Change) -> Result<(bool, bool)> {
    let fits = |path: &str, chunks: &[Chunk]| -> Result<bool> {
        let path = files.relative(path)?;
        let text = files.read_if_there(&path)?.and_then(|bytes| String::from_utf8(bytes).ok());
        Ok(text.is_some_and(|text| apply::apply(&text, chunks, "").is_ok()))
    };
    Ok(match change {
        Change::Add { path, content } => {
            let now = files.read_if_there(&files.relative(path)?)?;
            (now.as_deref() == Some(content.as_bytes()), now.is_none())
        }
        Change::Delete { path } => {
            let is_there = files.read_if_there(&files.relative(path)?)?.is_some();
            (!is_there, is_there)
        }
        Change::Update { path, to, chunks } => {
            let reversed: Vec<_> = chunks.iter().map(Chunk::reversed).collect();
            let is_there = |path: &String| Ok::<_, Error>(files.read_if_there(&files.relative(path)?)?.is_some());
            let Some(to) = to else { return Ok((fits(path, &reversed)?, fits(path, chunks)?)) };
            (!is_there(path)? && fits(to, &reversed)?, !is_there(to)? && fits(path, chunks)?)
        }
    })
}
