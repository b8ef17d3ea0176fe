//! `write_file`.

use agent_core::{Effect, Result, Tool};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{
    files::{Files, shown},
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
    let description = "Writes a whole file; one that is there is replaced. To change a part of a file, use edit_file.";
    from_fn("write_file", description, move |args: WriteFile, _| {
        let files = files.clone();
        blocking(move || write(&files, &args))
    })
    .with_options(|o| o.effect(Effect::Idempotent).serial())
}

fn write(files: &Files, args: &WriteFile) -> Result<String> {
    let path = files.relative(&args.path)?;
    let _changing = files.changing();
    let is_new = files.replace(&path, args.content.as_bytes())?;
    let (done, lines) =
        (if is_new { "created" } else { "replaced" }, count(args.content.lines().count() as u64, "line"));
    Ok(format!("{done} {} ({lines})", shown(&path)))
}
