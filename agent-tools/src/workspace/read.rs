//! `read_file` and `read_many_files`.

#[cfg(feature = "pdf")]
use std::sync::Arc;
use std::{
    borrow::Cow,
    fmt::Write,
    ops::ControlFlow,
    path::{Path, PathBuf},
};

use agent_core::{
    Effect, Error, ErrorKind, Part, Result, RunCx, Tool, ToolOutput, ToolRequest,
    message::{Media, Text},
};
use base64::{Engine, prelude::BASE64_STANDARD};
use schemars::JsonSchema;
use serde::Deserialize;

#[cfg(feature = "pdf")]
use super::pdf;
use super::{
    files::{Files, shown},
    glob::Names,
    names,
    seen::Seen,
    text::{is_binary, start},
    walk::{Ended, Stop, walk},
};
use crate::{ToolExt, blocking::blocking, from_fn};

/// Maximum length of a line that is shown whole, in bytes.
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
    /// Of a line that was cut: the byte of start_line to go on at, from 1. Only that line is shown then.
    #[schemars(range(min = 1))]
    start_byte: Option<usize>,
    /// Of a PDF: the pages to show, such as "3", "2-5" or "6-".
    #[cfg(feature = "pdf")]
    pages: Option<String>,
}

pub(super) fn tool(files: Files) -> impl Tool {
    let others = if cfg!(feature = "pdf") { "the text of a PDF's pages, or an image" } else { "or an image" };
    let description = format!(
        "Reads a text file, {others} (PNG, JPEG, GIF, WebP). Each line is shown with its number: `   12| text`; only the text after `| ` is in the file."
    );
    #[cfg(feature = "pdf")]
    let pdfs = pdf::Pdfs::new();
    from_fn("read_file", description, move |args: ReadFile, req: ToolRequest| {
        let files = files.clone();
        #[cfg(feature = "pdf")]
        let pdfs = pdfs.clone();
        async move {
            let (of, cx) = (files.clone(), req.cx.clone());
            let read = blocking(move || read(&of, &args, &Seen::new(&of, &cx))).await?;
            match read {
                Read::Shown(output) => Ok::<_, Error>(output),
                #[cfg(feature = "pdf")]
                Read::Pdf { path, bytes, pages } => {
                    let (most, name) = (files.limits.output_bytes, shown(&path));
                    let read = pdfs.read(name, bytes.clone(), pages.as_deref(), most).await?;
                    if read.are_all {
                        Seen::new(&files, &req.cx).read(&path, &bytes);
                    }
                    Ok(ToolOutput::text(read.text))
                }
            }
        }
    })
    .with_options(|o| names::of_file(o.effect(Effect::Pure)))
}

/// Kind of content of a file.
enum Read {
    Shown(ToolOutput),
    /// The text is extracted separately, since that may take long.
    #[cfg(feature = "pdf")]
    Pdf {
        path: PathBuf,
        bytes: Arc<[u8]>,
        pages: Option<String>,
    },
}

fn read(files: &Files, args: &ReadFile, seen: &Seen<'_>) -> Result<Read> {
    let path = files.relative(&args.path)?;
    let bytes = files.read(&path)?;
    #[cfg(feature = "pdf")]
    match (pdf::is_pdf(&bytes), args.start_line.or(args.end_line).or(args.start_byte)) {
        (true, None) => return Ok(Read::Pdf { path, bytes: bytes.into(), pages: args.pages.clone() }),
        (true, Some(_)) => {
            return Err(Error::tool(format!("'{}' is a PDF, which has no lines: choose by pages", shown(&path))));
        }
        (false, _) if args.pages.is_some() => {
            return Err(Error::tool(format!("'{}' is no PDF, and has no pages: choose by start_line", shown(&path))));
        }
        (false, _) => {}
    }
    if let Some(mime) = image_type(&bytes) {
        let image = image(&shown(&path), mime, &bytes)?;
        seen.read(&path, &bytes);
        return Ok(Read::Shown(image));
    }
    let most = files.limits.output_bytes;
    let lines = match args.start_byte {
        Some(byte) => rest_of_line(&path, &bytes, (args.start_line.unwrap_or(1), byte), most)?,
        None => lines(&path, &bytes, (args.start_line, args.end_line), most)?,
    };
    if lines.are_all {
        seen.read(&path, &bytes);
    }
    Ok(Read::Shown(ToolOutput::text(lines.text)))
}

/// Maximum size of an image that providers accept, in bytes: 5 MiB of base64, which encodes three
/// bytes as four.
const LARGEST_IMAGE: usize = (5 << 20) / 4 * 3;

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

pub(crate) fn image_type(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}

/// Lines of a text file for a model.
struct Lines {
    text: String,
    /// True if all of the file is shown.
    are_all: bool,
}

/// Decodes the text of a file. Invalid UTF-8 becomes `\u{fffd}`.
fn text<'a>(shown: &str, bytes: &'a [u8]) -> Result<Cow<'a, str>> {
    #[cfg(feature = "pdf")]
    if pdf::is_pdf(bytes) {
        return Err(Error::tool(format!("'{shown}' is a PDF: read it with read_file")));
    }
    if is_binary(bytes) {
        return Err(Error::tool(format!("'{shown}' is not text: it is a binary file of {} bytes", bytes.len())));
    }
    Ok(String::from_utf8_lossy(bytes))
}

/// Note on a text in which `\u{fffd}` replaces some bytes of the file.
const NOT_UTF8: &str = "\n[not all of it is UTF-8: what is not is shown as \u{fffd}; so no tool for files replaces or removes it as a whole]";

fn after_the_last(shown: &str, total: usize, start: usize) -> Error {
    Error::tool(format!("'{shown}' has {total} lines: start_line {start} is after the last"))
}

/// Returns lines of a file with their numbers, about `most` bytes, with a note on omitted ones.
fn lines(path: &Path, bytes: &[u8], (first, end): (Option<usize>, Option<usize>), most: usize) -> Result<Lines> {
    let shown = shown(path);
    let text = text(&shown, bytes)?;
    let total = text.lines().count();
    if total == 0 {
        return Ok(Lines { text: format!("{shown} (empty)"), are_all: true });
    }
    let (first, end) = (first.unwrap_or(1).max(1), end.unwrap_or(total).min(total));
    if first > total {
        return Err(after_the_last(&shown, total, first));
    }
    if end < first {
        return Err(Error::tool(format!("end_line {end} is before start_line {first}")));
    }
    let (mut lines, mut last, mut cut) = (String::new(), first, None);
    for (number, line) in text.lines().enumerate().map(|(i, line)| (i + 1, line)).take(end).skip(first - 1) {
        if lines.len() > most {
            break;
        }
        let is_whole = line.len() <= LONGEST_LINE;
        let (line, of) = (start(line, LONGEST_LINE), line.len());
        write!(lines, "{number:>5}| {line}").expect("a string takes everything");
        if !is_whole {
            write!(lines, " [cut: the line has {of} bytes]").expect("a string takes everything");
            cut.get_or_insert((number, line.len() + 1));
        }
        lines.push('\n');
        last = number;
    }
    let mut notes = String::new();
    if let Some((line, byte)) = cut {
        write!(notes, "\n[read_file with start_line = {line} and start_byte = {byte} shows more of line {line}]")
            .expect("a string takes everything");
    }
    if last < end {
        write!(notes, "\n[cut: go on with start_line = {}]", last + 1).expect("a string takes everything");
    }
    let is_utf8 = matches!(text, Cow::Borrowed(_));
    if !is_utf8 {
        notes.push_str(NOT_UTF8);
    }
    let are_all = first == 1 && last == total && cut.is_none() && is_utf8;
    let text = format!("{shown} (lines {first}-{last} of {total})\n{}{notes}", lines.trim_end_matches('\n'));
    Ok(Lines { text, are_all })
}

/// Returns one line from a byte offset on, at most `most` bytes.
fn rest_of_line(path: &Path, bytes: &[u8], (number, byte): (usize, usize), most: usize) -> Result<Lines> {
    let shown = shown(path);
    let text = text(&shown, bytes)?;
    let total = text.lines().count();
    let line = text.lines().nth(number.saturating_sub(1)).ok_or_else(|| after_the_last(&shown, total, number))?;
    if byte > line.len().max(1) {
        let of = line.len();
        return Err(Error::tool(format!(
            "line {number} of '{shown}' has {of} bytes: start_byte {byte} is after the last"
        )));
    }
    let from = line.floor_char_boundary(byte.saturating_sub(1));
    let rest = start(&line[from..], most.max(4)); // at least one character
    let end = from + rest.len();
    let more = if end < line.len() { format!("\n[cut: go on with start_byte = {}]", end + 1) } else { String::new() };
    let is_utf8 = matches!(text, Cow::Borrowed(_));
    let are_all = total == 1 && from == 0 && end == line.len() && is_utf8;
    let (of, note) = (line.len(), if is_utf8 { "" } else { NOT_UTF8 });
    let text = format!("{shown} (line {number} of {total}, bytes {}-{end} of {of})\n{rest}{more}{note}", from + 1);
    Ok(Lines { text, are_all })
}

#[derive(Deserialize, JsonSchema)]
struct ReadManyFiles {
    /// Files, or patterns of them such as `src/**/*.rs`.
    #[schemars(length(min = 1))]
    paths: Vec<String>,
}

/// Maximum of files per call.
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
    let (stop, mut found, mut report) = (Stop::new(cx.clone(), files), Vec::new(), Vec::new());
    for wanted in &args.paths {
        match matching(files, wanted, &stop, &mut found) {
            Ok(Some(note)) => report.push(note),
            Ok(None) => {}
            Err(e) if e.kind() == ErrorKind::Tool => report.push(format!("[{}]", e.message())),
            Err(e) => return Err(e),
        }
    }
    // Each file has a share of the output, so that the first does not use all of it.
    let (share, seen) = (files.limits.output_bytes / found.len().max(1), Seen::new(files, cx));
    for path in &found {
        let read = files.read(path).and_then(|bytes| {
            let lines = lines(path, &bytes, (None, None), share)?;
            if lines.are_all {
                seen.read(path, &bytes);
            }
            Ok(lines.text)
        });
        report.push(read.unwrap_or_else(|e| format!("[{}]", e.message())));
    }
    Ok(report.join("\n\n"))
}

/// Adds the files that match, without duplicates. Returns a note if some are missing.
fn matching(files: &Files, wanted: &str, stop: &Stop, found: &mut Vec<PathBuf>) -> Result<Option<String>> {
    let mut add = |path: &Path| {
        let is_new = !found.iter().any(|known| known == path);
        if is_new && found.len() == MOST_FILES {
            return false;
        }
        if is_new {
            found.push(path.to_owned());
        }
        true
    };
    let (path, too_many) = (files.relative(wanted)?, format!("[cut at {MOST_FILES} files, at '{wanted}': name fewer]"));
    if files.is_file(&path) {
        return Ok((!add(&path)).then_some(too_many));
    }
    let (names, mut matched) = (Names::new(&shown(&path))?, false);
    let ended = walk(files, Path::new(""), usize::MAX, stop, &mut |there| {
        let fits = there.entry.is_file() && names.contains(there.path);
        matched |= fits;
        Ok(if fits && !add(there.path) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    })?;
    Ok(match ended {
        Ended::Enough => Some(too_many),
        Ended::Late => Some(format!("[the time was up: there may be more that match '{wanted}']")),
        Ended::Complete if !matched => Some(format!("[no file matches '{wanted}']")),
        Ended::Complete => None,
    })
}
