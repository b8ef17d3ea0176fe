//! `glob`, and the name patterns that `grep` uses too.

use std::{ops::ControlFlow, path::Path};

use agent_core::{Effect, Error, Result, RunCx, Tool, ToolRequest};
use globset::{GlobBuilder, GlobMatcher};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{
    files::{Files, shown},
    walk::{Ended, Stop, walk},
};
use crate::{ToolExt, blocking::blocking, from_fn};

const DEFAULT_RESULTS: usize = 100;

#[derive(Deserialize, JsonSchema)]
struct Glob {
    /// A glob pattern such as `*.rs`, `src/**/*.{ts,tsx}` or `docs/`. Without a `/` it is for the name in any folder.
    pattern: String,
    /// The folder to look in; the root of the workspace if it is left out.
    path: Option<String>,
    /// Most paths to show. Default: 100.
    #[schemars(range(min = 1, max = 1000))]
    max_results: Option<usize>,
}

pub(super) fn tool(files: Files) -> impl Tool {
    let description = "Finds files whose path matches a glob pattern, one path per line. Hidden files and those that .gitignore leaves out are \
                       not found.";
    from_fn("glob", description, move |args: Glob, req: ToolRequest| {
        let files = files.clone();
        blocking(move || find(&files, &args, req.cx))
    })
    .with_options(|o| o.effect(Effect::Pure))
}

fn find(files: &Files, args: &Glob, cx: RunCx) -> Result<String> {
    let wanted = Names::new(&args.pattern)?;
    let start = files.relative(args.path.as_deref().unwrap_or_default())?;
    let most = args.max_results.unwrap_or(DEFAULT_RESULTS);
    let mut paths = Vec::new();
    let ended = walk(files, &start, usize::MAX, &Stop::new(cx, files), &mut |found| {
        if found.entry.is_folder() || !wanted.contains(below(found.path, &start)) {
            return Ok(ControlFlow::Continue(()));
        }
        if paths.len() == most {
            return Ok(ControlFlow::Break(()));
        }
        paths.push(shown(found.path));
        Ok(ControlFlow::Continue(()))
    })?;
    match ended {
        Ended::Complete if paths.is_empty() => paths.push(format!("no file matches '{}'", args.pattern)),
        Ended::Complete => {}
        Ended::Enough => paths.push(format!("[cut at {most}: narrow the pattern, or set max_results]")),
        Ended::Late => paths.push("[the time was up: there may be more]".to_owned()),
    }
    Ok(paths.join("\n"))
}

/// Returns the path relative to the searched folder.
pub(super) fn below<'a>(path: &'a Path, folder: &Path) -> &'a Path {
    path.strip_prefix(folder).unwrap_or(path)
}

/// Path pattern.
pub(super) struct Names {
    glob: GlobMatcher,
    /// True if the pattern matches the name only, in any folder.
    of_name: bool,
}

impl Names {
    pub(super) fn new(pattern: &str) -> Result<Self> {
        let trimmed = pattern.trim().trim_start_matches("./").trim_start_matches('/');
        let whole = if trimmed.ends_with('/') { format!("{trimmed}**") } else { trimmed.to_owned() };
        let invalid = |e: globset::Error| Error::tool(format!("'{pattern}' is not a glob: {}", e.kind()));
        let glob = GlobBuilder::new(&whole).literal_separator(true).build().map_err(invalid)?;
        Ok(Self { glob: glob.compile_matcher(), of_name: !whole.contains('/') })
    }

    pub(super) fn contains(&self, path: &Path) -> bool {
        let path = if self.of_name { path.file_name().map_or(path, Path::new) } else { path };
        self.glob.is_match(path)
    }
}
