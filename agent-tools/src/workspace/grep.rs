//! `grep`.

use std::{fmt::Write, io, ops::ControlFlow};

use agent_core::{Effect, Error, Result, RunCx, Tool, ToolRequest};
use grep_matcher::LineTerminator;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{Searcher, SearcherBuilder, Sink, SinkContext, SinkMatch};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{
    files::{Files, shown},
    glob::{Names, below},
    place::Entry,
    text::{count, cut, is_binary},
    walk::{Ended, Found, Stop, walk},
};
use crate::{ToolExt, blocking::blocking, from_fn};

const DEFAULT_RESULTS: usize = 100;

/// Maximum length of a line that is shown whole, in bytes.
const LONGEST_LINE: usize = 500;

/// Maximum size of a compiled regular expression, in bytes.
const LARGEST_REGEX: usize = 4 << 20;

#[derive(Deserialize, JsonSchema)]
struct Grep {
    /// A regular expression for a line. `(?i)` at the start ignores case.
    pattern: String,
    /// The file or the folder to search in; the root of the workspace if it is left out.
    path: Option<String>,
    /// Only files whose path fits, such as `*.rs` or `src/**`.
    glob: Option<String>,
    /// Most matching lines to show. Default: 100.
    #[schemars(range(min = 1, max = 1000))]
    max_results: Option<usize>,
    /// Lines to show before and after each match. Default: 0.
    #[schemars(range(max = 20))]
    context: Option<usize>,
}

pub(super) fn tool(files: Files) -> impl Tool {
    let description = "Searches the text of files for a regular expression. Shows `path:line: text`. Hidden files, binary \
                       files and those that .gitignore leaves out are not searched.";
    from_fn("grep", description, move |args: Grep, req: ToolRequest| {
        let files = files.clone();
        blocking(move || search(&files, &args, req.cx))
    })
    .with_options(|o| o.effect(Effect::Pure))
}

fn search(files: &Files, args: &Grep, cx: RunCx) -> Result<String> {
    let matcher = matcher(&args.pattern)?;
    let wanted = args.glob.as_deref().map(Names::new).transpose()?;
    let context = args.context.unwrap_or(0);
    let mut searcher = SearcherBuilder::new()
        .line_terminator(LineTerminator::crlf())
        .before_context(context)
        .after_context(context)
        .build();
    let most = args.max_results.unwrap_or(DEFAULT_RESULTS);
    let mut hits =
        Hits { path: String::new(), lines: String::new(), left: most, most_bytes: files.limits.output_bytes };
    let mut passed_over = 0_u64;
    let start = files.relative(args.path.as_deref().unwrap_or_default())?;
    let mut visit = |found: &Found<'_>| {
        let is_wanted = wanted.as_ref().is_none_or(|names| names.contains(below(found.path, &start)));
        if !found.entry.is_file() || !is_wanted {
            return Ok(ControlFlow::Continue(()));
        }
        let Ok(bytes) = files.read_quietly(found.path) else {
            passed_over += 1;
            return Ok(ControlFlow::Continue(()));
        };
        if !is_binary(&bytes) {
            hits.path = shown(found.path);
            let failed = |e| Error::tool(format!("'{}' cannot be searched: {e}", shown(found.path)));
            searcher.search_slice(&matcher, &bytes, &mut hits).map_err(failed)?;
        }
        Ok(if hits.is_full() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    };
    let ended = if files.is_file(&start) {
        match visit(&Found { path: &start, entry: &Entry::file("", 0) })? {
            ControlFlow::Continue(()) => Ended::Complete,
            ControlFlow::Break(()) => Ended::Enough,
        }
    } else {
        walk(files, &start, usize::MAX, &Stop::new(cx, files), &mut visit)?
    };
    let mut report = hits.lines;
    if report.is_empty() {
        writeln!(report, "no line matches '{}'", args.pattern).expect("a string takes everything");
    }
    match ended {
        Ended::Complete => {}
        Ended::Enough => report.push_str("[cut: there may be more; narrow the pattern or the glob]\n"),
        Ended::Late => report.push_str("[the time was up: not all files were searched]\n"),
    }
    if passed_over > 0 {
        let passed_over = count(passed_over, "file");
        writeln!(report, "[{passed_over} could not be read, or too large]").expect("a string takes everything");
    }
    Ok(report.trim_end().to_owned())
}

/// Compiles a pattern. Matching takes linear time whatever the pattern; the compiled size is
/// bounded too.
fn matcher(pattern: &str) -> Result<RegexMatcher> {
    let mut builder = RegexMatcherBuilder::new();
    builder.multi_line(true).crlf(true).size_limit(LARGEST_REGEX).dfa_size_limit(LARGEST_REGEX);
    let invalid = |e| {
        let escape = "escape ( ) [ ] { } . * + ? ^ $ | with a backslash";
        Error::tool(format!("'{pattern}' is not a regular expression: {e}; {escape}"))
    };
    builder.build(pattern).map_err(invalid)
}

/// Collects matching lines up to a maximum.
struct Hits {
    path: String,
    lines: String,
    /// Number of matches that may still be shown.
    left: usize,
    most_bytes: usize,
}

impl Hits {
    fn is_full(&self) -> bool {
        self.left == 0 || self.lines.len() > self.most_bytes
    }

    fn write(&mut self, mark: char, number: Option<u64>, line: &[u8]) {
        let (number, line) = (number.unwrap_or_default(), String::from_utf8_lossy(line));
        let line = cut(line.trim_end_matches(['\r', '\n']), LONGEST_LINE);
        let space = if mark == ':' { ": " } else { "- " };
        writeln!(self.lines, "{}{mark}{number}{space}{line}", self.path).expect("a string takes everything");
    }
}

impl Sink for Hits {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        if self.is_full() {
            return Ok(false);
        }
        self.left -= 1;
        self.write(':', found.line_number(), found.bytes());
        Ok(true)
    }

    fn context(&mut self, _: &Searcher, found: &SinkContext<'_>) -> io::Result<bool> {
        self.write('-', found.line_number(), found.bytes());
        Ok(self.lines.len() <= self.most_bytes)
    }

    fn context_break(&mut self, _: &Searcher) -> io::Result<bool> {
        self.lines.push_str("--\n");
        Ok(true)
    }
}
