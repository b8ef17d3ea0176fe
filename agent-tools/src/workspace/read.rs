//! `read_file`.

use std::{borrow::Cow, fmt::Write};

use agent_core::{Effect, Error, Result, Tool, ToolRequest};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{
    files::{Files, shown},
    seen::Seen,
    text::{cut, is_binary},
};
use crate::{ToolExt, blocking::blocking, from_fn};

/// Longest line that is shown whole, in bytes.
const LONGEST_LINE: usize = 2_000;

#[derive(Deserialize, JsonSchema)]
struct ReadFile {
    /// The file, relative to the root of the workspace.
    path: String,
    /// The first line to show, from 1.
    #[schemars(range(min = 1))]
    start_line: Option<usize>,
    /// The last line to show.
    #[schemars(range(min = 1))]
    end_line: Option<usize>,
}

pub(super) fn tool(files: Files) -> impl Tool {
    let description = "Reads a text file. Each line is shown with its number: `   12| text`; only the text after `| ` is in \
                       the file.";
    from_fn("read_file", description, move |args: ReadFile, req: ToolRequest| {
        let files = files.clone();
        blocking(move || read(&files, &args, &Seen::of(&files, &req.cx)))
    })
    .with_options(|o| o.effect(Effect::Pure))
}

fn read(files: &Files, args: &ReadFile, seen: &Seen) -> Result<String> {
    let path = files.relative(&args.path)?;
    let bytes = files.read(&path)?;
    seen.note(&path, &bytes);
    let shown = shown(&path);
    if is_binary(&bytes) {
        return Err(Error::tool(format!("'{shown}' is not text: it is a binary file of {} bytes", bytes.len())));
    }
    let text = String::from_utf8_lossy(&bytes);
    let total = text.lines().count();
    if total == 0 {
        return Ok(format!("{shown} (empty)"));
    }
    let (start, end) = (args.start_line.unwrap_or(1).max(1), args.end_line.unwrap_or(total).min(total));
    if start > total {
        return Err(Error::tool(format!("'{shown}' has {total} lines: start_line {start} is after the last")));
    }
    if end < start {
        return Err(Error::tool(format!("end_line {end} is before start_line {start}")));
    }
    let mut lines = String::new();
    let mut last = start;
    for (number, line) in text.lines().enumerate().map(|(i, line)| (i + 1, line)).take(end).skip(start - 1) {
        if lines.len() > files.limits.output_bytes {
            break;
        }
        writeln!(lines, "{number:>5}| {}", cut(line, LONGEST_LINE)).expect("a string takes everything");
        last = number;
    }
    let mut notes = String::new();
    if last < end {
        write!(notes, "\n[cut: go on with start_line = {}]", last + 1).expect("a string takes everything");
    }
    if matches!(text, Cow::Owned(_)) {
        notes.push_str("\n[not all of it is UTF-8: what is not is shown as \u{fffd}]");
    }
    Ok(format!("{shown} (lines {start}-{last} of {total})\n{}{notes}", lines.trim_end_matches('\n')))
}
