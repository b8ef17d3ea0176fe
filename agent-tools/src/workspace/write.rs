//! `write_file`.

use agent_core::{Effect, Result, Tool, ToolRequest};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{
    files::{Files, shown},
    names,
    seen::Seen,
    text::count,
};
use crate::{ToolExt, blocking::blocking, from_fn};

#[derive(Deserialize, JsonSchema)]
struct WriteFile {
    /// The file, relative to the root of the workspace. Folders on the way are made.
    path: String,
    /// The whole content.
    content: String,
}

pub(super) fn tool(files: Files) -> impl Tool {
    let description = "Writes a whole file; one that is there is replaced, if you have read it as it is now. To change a part of a file, \
                       use edit_file.";
    from_fn("write_file", description, move |args: WriteFile, req: ToolRequest| {
        let files = files.clone();
        blocking(move || write(&files, &args, &Seen::new(&files, &req.cx)))
    })
    .with_options(|o| names::of_file(o.effect(Effect::Idempotent).serial()))
}

fn write(files: &Files, args: &WriteFile, seen: &Seen<'_>) -> Result<String> {
    let path = files.relative(&args.path)?;
    let _changing = files.changing();
    let content = args.content.as_bytes();
    match files.read_if_there(&path)? {
        // After a crash, the file may already hold this content: that is not another's change.
        Some(now) if now != content => seen.check(&path, &now)?,
        _ => {}
    }
    let is_new = files.replace(&path, content)?;
    seen.wrote(&path, content);
    let (done, lines) =
        (if is_new { "created" } else { "replaced" }, count(args.content.lines().count() as u64, "line"));
    Ok(format!("{done} {} ({lines})", shown(&path)))
}
