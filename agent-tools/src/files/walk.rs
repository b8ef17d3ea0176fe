//! Walk through the workspace in name order, without hidden or ignored files.

use std::{
    ops::ControlFlow,
    path::{Path, PathBuf},
    time::Instant,
};

use agent_core::{Error, ErrorKind, Result, RunCx};
use ignore::{
    Match,
    gitignore::{Gitignore, GitignoreBuilder},
};

use super::{Files, place::Entry};

/// Maximum depth; deeper folders are not entered.
const DEEPEST: usize = 64;

/// File that lists ignored files.
const IGNORES: &str = ".gitignore";

/// Limits the duration of a walk.
pub(crate) struct Stop {
    /// Run that the walk belongs to; `None` if the walk is too short for cancellation to matter.
    pub(crate) cx: Option<RunCx>,
    /// Deadline of the walk.
    pub(crate) at: Option<Instant>,
}

impl Stop {
    pub(crate) fn new(cx: RunCx, files: &Files) -> Self {
        Self { cx: Some(cx), at: Instant::now().checked_add(files.limits.search_time) }
    }

    fn is_cancelled(&self) -> bool {
        self.cx.as_ref().is_some_and(|cx| cx.cancellation().is_cancelled())
    }

    fn is_due(&self) -> bool {
        self.at.is_some_and(|at| Instant::now() >= at)
    }
}

/// Entry that a walk visits.
pub(crate) struct Found<'a> {
    /// Relative to the root.
    pub(crate) path: &'a Path,
    pub(crate) entry: &'a Entry,
}

/// Reason why a walk ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    Complete,
    /// The visitor stopped it.
    Enough,
    /// The deadline passed.
    Late,
}

type Visit<'a> = dyn FnMut(&Found<'_>) -> Result<ControlFlow<()>> + 'a;

/// Visits everything below the folder `start`, at most `depth` levels deep; a folder precedes its
/// content.
pub(crate) fn walk(files: &Files, start: &Path, depth: usize, stop: &Stop, visit: &mut Visit<'_>) -> Result<Ended> {
    let start = files.followed(start)?;
    let entries = files.list(&start)?;
    let mut walk = Walk { files, stop, visit, ignores: Vec::new() };
    // Ignore files of parent folders apply too.
    for above in start.ancestors().skip(1).collect::<Vec<_>>().into_iter().rev() {
        walk.push_ignores(above);
    }
    Ok(match walk.folder(&start, entries, depth.min(DEEPEST))? {
        ControlFlow::Continue(()) => Ended::Complete,
        ControlFlow::Break(ended) => ended,
    })
}

struct Walk<'a, 'v> {
    files: &'a Files,
    stop: &'a Stop,
    visit: &'a mut Visit<'v>,
    /// Ignore files of the parent folders, outermost first, each with its folder.
    ignores: Vec<(PathBuf, Gitignore)>,
}

impl Walk<'_, '_> {
    fn folder(&mut self, path: &Path, entries: Vec<Entry>, depth: usize) -> Result<ControlFlow<Ended>> {
        let outer = self.ignores.len();
        if entries.iter().any(|entry| entry.name == IGNORES) {
            self.push_ignores(path);
        }
        let flow = self.entries(path, entries, depth);
        self.ignores.truncate(outer);
        flow
    }

    fn entries(&mut self, folder: &Path, entries: Vec<Entry>, depth: usize) -> Result<ControlFlow<Ended>> {
        for entry in entries {
            if self.stop.is_cancelled() {
                return Err(Error::new(ErrorKind::Cancelled, "the run was cancelled"));
            }
            if self.stop.is_due() {
                return Ok(ControlFlow::Break(Ended::Late));
            }
            let path = folder.join(&entry.name);
            if entry.name.starts_with('.') || self.is_ignored(&path, entry.is_folder()) {
                continue;
            }
            if (self.visit)(&Found { path: &path, entry: &entry })?.is_break() {
                return Ok(ControlFlow::Break(Ended::Enough));
            }
            // An unreadable folder is skipped.
            if entry.is_folder()
                && depth > 1
                && let Ok(below) = self.files.list(&path)
                && let ControlFlow::Break(ended) = self.folder(&path, below, depth - 1)?
            {
                return Ok(ControlFlow::Break(ended));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn push_ignores(&mut self, folder: &Path) {
        let Ok(bytes) = self.files.read_quietly(&folder.join(IGNORES)) else { return };
        let mut builder = GitignoreBuilder::new("");
        for line in String::from_utf8_lossy(&bytes).lines() {
            // An invalid pattern ignores nothing, as in git.
            drop(builder.add_line(None, line));
        }
        if let Ok(ignores) = builder.build() {
            self.ignores.push((folder.to_owned(), ignores));
        }
    }

    /// Returns the decision of the innermost ignore file with a matching pattern.
    fn is_ignored(&self, path: &Path, is_dir: bool) -> bool {
        let opinions = self.ignores.iter().rev().filter_map(|(folder, ignores)| {
            match ignores.matched(path.strip_prefix(folder).ok()?, is_dir) {
                Match::None => None,
                Match::Ignore(_) => Some(true),
                Match::Whitelist(_) => Some(false),
            }
        });
        opinions.into_iter().next().unwrap_or(false)
    }
}
