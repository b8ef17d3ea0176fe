//! Walks the workspace, in the order of the names, without what is hidden or ignored.

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

/// Deeper folders are not entered.
const DEEPEST: usize = 64;

/// What says which files are left out.
const IGNORES: &str = ".gitignore";

/// Decides how long a walk may go on.
pub(crate) struct Stop {
    /// The run that the walk is for; none if it is too short for cancelling to matter.
    pub(crate) cx: Option<RunCx>,
    /// When it ends at the latest.
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

/// Something that a walk came by.
pub(crate) struct Found<'a> {
    /// Relative to the root.
    pub(crate) path: &'a Path,
    pub(crate) entry: &'a Entry,
}

/// How a walk ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    Complete,
    /// The visitor had enough.
    Enough,
    /// The time was up.
    Late,
}

type Visit<'a> = dyn FnMut(&Found<'_>) -> Result<ControlFlow<()>> + 'a;

/// Shows `visit` everything below the folder `start`, at most `depth` levels down; a folder comes before what it holds.
pub(crate) fn walk(files: &Files, start: &Path, depth: usize, stop: &Stop, visit: &mut Visit<'_>) -> Result<Ended> {
    let start = files.followed(start)?;
    let entries = files.list(&start)?;
    let mut walk = Walk { files, stop, visit, ignores: Vec::new() };
    // Folders on the way decide, too.
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
    /// The ignore files of the folders on the way, outermost first, each with its folder.
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
            // A folder that cannot be read is passed over.
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
            // A line that is not a pattern ignores nothing, as in git.
            drop(builder.add_line(None, line));
        }
        if let Ok(ignores) = builder.build() {
            self.ignores.push((folder.to_owned(), ignores));
        }
    }

    /// What the innermost ignore file with an opinion says.
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
