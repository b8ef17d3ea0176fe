//! `read_file` and `read_many_files`.

use std::{borrow::Cow, fmt::Write, ops::ControlFlow, path::Path};

use agent_core::{
    Effect, Error, Part, Result, RunCx, Tool, ToolOutput, ToolRequest,
    message::{Media, Text},
};
use base64::{Engine, prelude::BASE64_STANDARD};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{
    files::{Files, shown},
    find::Names,
    seen::Seen,
    text::{cut, is_binary},
    walk::{Stop, walk},
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
    let description = "Reads a text file, or shows an image (PNG, JPEG, GIF, WebP). Each line is shown with its number: `   12| text`; only the text after `| ` is in \
                       the file.";
    from_fn("read_file", description, move |args: ReadFile, req: ToolRequest| {
        let files = files.clone();
        blocking(move || read(&files, &args, &Seen::of(&files, &req.cx)))
    })
    .with_options(|o| o.effect(Effect::Pure))
}

fn read(files: &Files, args: &ReadFile, seen: &Seen) -> Result<ToolOutput> {
    let path = files.relative(&args.path)?;
    let bytes = files.read(&path)?;
    seen.note(&path, &bytes);
    if let Some(mime) = image_type(&bytes) {
        return image(&shown(&path), mime, &bytes);
    }
    lines(&path, &bytes, (args.start_line, args.end_line), files.limits.output_bytes).map(ToolOutput::text)
}

/// The largest image that providers take, in bytes.
const LARGEST_IMAGE: usize = 5 << 20;

fn image(shown: &str, mime: &str, bytes: &[u8]) -> Result<ToolOutput> {
    if bytes.len() > LARGEST_IMAGE {
        return Err(Error::tool(format!(
            "the image '{shown}' has {} bytes, more than the {LARGEST_IMAGE} that models take",
            bytes.len()
        )));
    }
    let image = Media::base64(BASE64_STANDARD.encode(bytes), mime).with_name(shown);
    let words = Text::new(format!("{shown} ({mime}, {} bytes)", bytes.len()));
    Ok(ToolOutput::parts(vec![Part::Text(words), Part::Image(image)]))
}

fn image_type(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}

/// Lines of a file with their numbers, of about `most` bytes, and what is left out.
fn lines(path: &Path, bytes: &[u8], (start, end): (Option<usize>, Option<usize>), most: usize) -> Result<String> {
    let shown = shown(path);
    if is_binary(bytes) {
        return Err(Error::tool(format!("'{shown}' is not text: it is a binary file of {} bytes", bytes.len())));
    }
    let text = String::from_utf8_lossy(bytes);
    let total = text.lines().count();
    if total == 0 {
        return Ok(format!("{shown} (empty)"));
    }
    let (start, end) = (start.unwrap_or(1).max(1), end.unwrap_or(total).min(total));
    if start > total {
        return Err(Error::tool(format!("'{shown}' has {total} lines: start_line {start} is after the last")));
    }
    if end < start {
        return Err(Error::tool(format!("end_line {end} is before start_line {start}")));
    }
    let mut lines = String::new();
    let mut last = start;
    for (number, line) in text.lines().enumerate().map(|(i, line)| (i + 1, line)).take(end).skip(start - 1) {
        if lines.len() > most {
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

#[derive(Deserialize, JsonSchema)]
struct ReadManyFiles {
    /// Files, or patterns of them such as `src/**/*.rs`.
    #[schemars(length(min = 1))]
    paths: Vec<String>,
}

/// Most files that are read at once.
const MOST_FILES: usize = 100;

pub(super) fn many(files: Files) -> impl Tool {
    let description = "Reads several text files, given by path or by pattern, as read_file does. A long one is shown by its beginning. Hidden files and \
                       those that .gitignore leaves out are read only if they are named.";
    from_fn("read_many_files", description, move |args: ReadManyFiles, req: ToolRequest| {
        let files = files.clone();
        blocking(move || read_many(&files, &args, &req.cx))
    })
    .with_options(|o| o.effect(Effect::Pure))
}

fn read_many(files: &Files, args: &ReadManyFiles, cx: &RunCx) -> Result<String> {
    let (seen, mut found, mut report) = (Seen::of(files, cx), Vec::new(), Vec::new());
    for wanted in &args.paths {
        let path = files.relative(wanted)?;
        if files.root().metadata(&path).is_ok_and(|there| there.is_file()) {
            found.push(path);
            continue;
        }
        let (names, before) = (Names::new(wanted)?, found.len());
        walk(files, Path::new(""), usize::MAX, &Stop::new(cx.clone(), files), &mut |there| {
            if there.file_type.is_file() && names.contains(there.path) {
                found.push(there.path.to_owned());
            }
            Ok(if found.len() > MOST_FILES { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })?;
        if found.len() == before {
            report.push(format!("[no file matches '{wanted}']"));
        }
    }
    let is_too_many = found.len() > MOST_FILES;
    found.truncate(MOST_FILES);
    // Each has its share, so that the first does not take all of it.
    let share = files.limits.output_bytes / found.len().max(1);
    for path in &found {
        let read = files.read(path).and_then(|bytes| {
            seen.note(path, &bytes);
            lines(path, &bytes, (None, None), share)
        });
        report.push(read.unwrap_or_else(|e| format!("[{}]", e.message())));
    }
    if is_too_many {
        report.push(format!("[cut at {MOST_FILES} files: narrow the patterns]"));
    }
    Ok(report.join("\n\n"))
}
