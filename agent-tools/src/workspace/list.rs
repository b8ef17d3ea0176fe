//! `list_files`.

use std::ops::ControlFlow;

use agent_core::{Effect, Result, RunCx, Tool, ToolRequest};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{
    files::{Files, shown},
    place::EntryKind,
    text::count,
    walk::{Ended, Found, Stop, walk},
};
use crate::{ToolExt, blocking::blocking, from_fn};

/// Maximum of entries that are shown.
const MOST_ENTRIES: usize = 1_000;

#[derive(Deserialize, JsonSchema)]
struct ListFiles {
    /// The folder, relative to the root of the workspace; the root if it is left out.
    path: Option<String>,
    /// Number of levels to list. Default: 1, which is the folder alone.
    #[schemars(range(min = 1))]
    depth: Option<usize>,
}

pub(super) fn tool(files: Files) -> impl Tool {
    let description = "Lists a folder, one path per line; folders end with `/`. Hidden files and those that .gitignore \
                       leaves out are not shown.";
    from_fn("list_files", description, move |args: ListFiles, req: ToolRequest| {
        let files = files.clone();
        blocking(move || list(&files, &args, req.cx))
    })
    .with_options(|o| o.effect(Effect::Pure))
}

fn list(files: &Files, args: &ListFiles, cx: RunCx) -> Result<String> {
    let start = files.relative(args.path.as_deref().unwrap_or_default())?;
    let (mut lines, mut bytes) = (Vec::new(), 0);
    let ended = walk(files, &start, args.depth.unwrap_or(1), &Stop::new(cx, files), &mut |found| {
        if lines.len() == MOST_ENTRIES || bytes > files.limits.output_bytes {
            return Ok(ControlFlow::Break(()));
        }
        lines.push(line(files, found));
        bytes += lines.last().map_or(0, String::len);
        Ok(ControlFlow::Continue(()))
    })?;
    match ended {
        Ended::Complete if lines.is_empty() => {
            lines.push(format!("{} holds nothing that is neither hidden nor ignored", shown(&start)));
        }
        Ended::Complete => {}
        Ended::Enough => lines.push("[there is more: list a folder below, or use glob]".to_owned()),
        Ended::Late => lines.push("[the time was up: there may be more]".to_owned()),
    }
    Ok(lines.join("\n"))
}

fn line(files: &Files, found: &Found<'_>) -> String {
    let path = found.path.display();
    match found.entry.kind {
        EntryKind::Folder => format!("{path}/"),
        EntryKind::Link => format!("{path} (link)"),
        EntryKind::Other => format!("{path} (not a regular file)"),
        EntryKind::File => {
            let known = || files.stat(found.path).ok().flatten()?.size;
            match found.entry.size.or_else(known) {
                Some(bytes) => format!("{path} ({})", count(bytes, "byte")),
                None => path.to_string(),
            }
        }
    }
}
