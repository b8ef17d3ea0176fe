//! `apply_patch`: changes of several files in the form that models are trained on (V4A).

mod apply;
mod parse;

use std::path::PathBuf;

use agent_core::{
    Effect, Error, Result, Tool, ToolOptions, ToolOutput, ToolRequest, ToolSpec, async_trait, tool::Reconciled,
};
use schemars::JsonSchema;
use serde::Deserialize;

use self::parse::{Change, Chunk, parse};
use super::{
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

/// Changes files by a patch.
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
        let seen = Seen::of(&files, &req.cx);
        blocking(move || carry_out(&files, &parse(&args.input)?, &seen)).await.map(ToolOutput::text)
    }

    async fn reconcile(&self, req: ToolRequest) -> Result<Reconciled> {
        let (files, args) = (self.0.clone(), req.parse::<PatchArgs>()?);
        blocking(move || reconcile(&files, &parse(&args.input)?)).await
    }
}

/// What is to be done to a file.
enum Step {
    /// The path is replaced; the other one, which it had before, is removed.
    Write(PathBuf, String, Option<PathBuf>),
    Remove(PathBuf),
}

fn carry_out(files: &Files, changes: &[Change], seen: &Seen) -> Result<String> {
    let _changing = files.changing();
    // Everything is made before anything is written.
    let steps = changes.iter().map(|change| step(files, change)).collect::<Result<Vec<_>>>()?;
    let mut done = Vec::new();
    for step in &steps {
        let line = take(files, step, seen).map_err(|e| match done.is_empty() {
            true => e,
            false => Error::tool(format!("{}; before that: {}", e.message(), done.join(", "))),
        })?;
        done.push(line);
    }
    Ok(done.join("\n"))
}

fn step(files: &Files, change: &Change) -> Result<Step> {
    let absent = |path: &PathBuf| match files.read_if_there(path) {
        Ok(None) => Ok(()),
        _ => Err(Error::tool(format!("'{}' is there already: update it", shown(path)))),
    };
    Ok(match change {
        Change::Add { path, content } => {
            let path = files.relative(path)?;
            absent(&path)?;
            files.allow_size(&path, content.len() as u64)?;
            Step::Write(path, content.clone(), None)
        }
        Change::Delete { path } => {
            let path = files.relative(path)?;
            files.read(&path)?;
            Step::Remove(path)
        }
        Change::Update { path, to, chunks } => {
            let path = files.relative(path)?;
            let text = apply::apply(&files.read_text(&path)?, chunks, &shown(&path))?;
            files.allow_size(&path, text.len() as u64)?;
            match to.as_ref().map(|to| files.relative(to)).transpose()? {
                Some(to) if to != path => {
                    absent(&to)?;
                    Step::Write(to, text, Some(path))
                }
                _ => Step::Write(path, text, None),
            }
        }
    })
}

fn take(files: &Files, step: &Step, seen: &Seen) -> Result<String> {
    match step {
        Step::Remove(path) => {
            files.remove(path)?;
            Ok(format!("removed {}", shown(path)))
        }
        Step::Write(path, text, from) => {
            let is_new = files.replace(path, text.as_bytes())?;
            seen.note(path, text.as_bytes());
            if let Some(from) = from {
                files.remove(from)?;
                return Ok(format!("moved {} to {}", shown(from), shown(path)));
            }
            Ok(format!("{} {}", if is_new { "created" } else { "changed" }, shown(path)))
        }
    }
}

/// Judges by the files: each change may look as if it was made, and as if it was not.
fn reconcile(files: &Files, changes: &[Change]) -> Result<Reconciled> {
    let (mut all_made, mut none_made) = (true, true);
    for change in changes {
        let (made, not_made) = looks(files, change)?;
        all_made &= made;
        none_made &= not_made;
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
            (fits(to.as_ref().unwrap_or(path), &reversed)?, fits(path, chunks)?)
        }
    })
}
