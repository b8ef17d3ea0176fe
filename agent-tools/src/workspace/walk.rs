//! Walks the workspace, in the order of the names, without what is hidden or ignored.

use std::{
    ffi::OsStr,
    io::{self, Read},
    ops::ControlFlow,
    path::{Path, PathBuf},
    time::Instant,
};

use agent_core::{Error, ErrorKind, Result, RunCx};
use cap_fs_ext::DirExt;
use cap_std::fs::{Dir, DirEntry, FileType};
use ignore::{
    Match,
    gitignore::{Gitignore, GitignoreBuilder},
};

use super::files::Files;

/// Deeper folders are not entered.
const DEEPEST: usize = 64;

/// Decides how long a walk may go on.
pub(crate) struct Stop {
    /// The run that the walk is for; none if it is too short for cancelling to matter.
    pub(crate) cx: Option<RunCx>,
    /// When it ends at the latest.
    pub(crate) at: Option<Instant>,
}

impl Stop {
    pub(super) fn new(cx: RunCx, files: &Files) -> Self {
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
    pub(crate) file_type: FileType,
    pub(crate) entry: &'a DirEntry,
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
    let mut walk = Walk { files, stop, visit, ignores: Vec::new() };
    let (dir, path) = walk.enter(start).map_err(|e| files.explain(start, &e))?;
    Ok(match walk.folder(&dir, &path, depth.min(DEEPEST))? {
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
    /// Goes down to where the walk starts, and reads the ignore files on the way.
    fn enter(&mut self, start: &Path) -> io::Result<(Dir, PathBuf)> {
        let root = self.files.root();
        let mut path = PathBuf::new();
        let mut dir = root.try_clone()?;
        if !start.as_os_str().is_empty() {
            for name in root.canonicalize(start)?.iter().filter(|name| *name != ".") {
                self.push_ignores(&dir, &path);
                dir = dir.open_dir(name)?;
                path.push(name);
            }
        }
        Ok((dir, path))
    }

    fn folder(&mut self, dir: &Dir, path: &Path, depth: usize) -> Result<ControlFlow<Ended>> {
        let outer = self.ignores.len();
        self.push_ignores(dir, path);
        let flow = self.entries(dir, path, depth);
        self.ignores.truncate(outer);
        flow
    }

    fn entries(&mut self, dir: &Dir, path: &Path, depth: usize) -> Result<ControlFlow<Ended>> {
        // A folder that cannot be read is passed over, as is an entry that is gone again.
        let mut entries: Vec<_> = dir.entries().into_iter().flatten().flatten().collect();
        entries.sort_by_key(DirEntry::file_name);
        for entry in entries {
            if self.stop.is_cancelled() {
                return Err(Error::new(ErrorKind::Cancelled, "the run was cancelled"));
            }
            if self.stop.is_due() {
                return Ok(ControlFlow::Break(Ended::Late));
            }
            let (name, Ok(file_type)) = (entry.file_name(), entry.file_type()) else { continue };
            let path = path.join(&name);
            if is_hidden(&name) || self.is_ignored(&path, file_type.is_dir()) {
                continue;
            }
            if (self.visit)(&Found { path: &path, file_type, entry: &entry })?.is_break() {
                return Ok(ControlFlow::Break(Ended::Enough));
            }
            if file_type.is_dir()
                && depth > 1
                && let Ok(below) = dir.open_dir_nofollow(&name)
                && let ControlFlow::Break(ended) = self.folder(&below, &path, depth - 1)?
            {
                return Ok(ControlFlow::Break(ended));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn push_ignores(&mut self, dir: &Dir, path: &Path) {
        let mut text = String::new();
        let file = self.files.open_regular(dir, Path::new(".gitignore"));
        if file.and_then(|mut file| file.read_to_string(&mut text)).is_err() {
            return;
        }
        let mut builder = GitignoreBuilder::new("");
        for line in text.lines() {
            // A line that is not a pattern ignores nothing, as in git.
            drop(builder.add_line(None, line));
        }
        if let Ok(ignores) = builder.build() {
            self.ignores.push((path.to_owned(), ignores));
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

fn is_hidden(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(b".")
}
