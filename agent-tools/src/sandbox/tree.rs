//! Folder traversal for copies: to another folder or into an archive.

use std::{
    io::{self, Read},
    path::{Component, Path, PathBuf},
};

use agent_core::{Error, Result};
use cap_std::{
    ambient_authority,
    fs::{Dir, DirEntry, OpenOptions, Permissions},
};

/// Maximum of bytes, entries and folder depth of one copy.
pub(super) const MOST_BYTES: u64 = 4 << 30;
const MOST_ENTRIES: u64 = 1_000_000;
const DEEPEST: usize = 200;

/// Copied mode bits: without set-user-id and set-group-id.
pub(super) const MODE: u32 = 0o777;

/// Result of a copy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Copied {
    /// Regular files.
    pub files: u64,
    /// Bytes of these files.
    pub bytes: u64,
    /// Links, pipes, sockets and devices that were skipped.
    pub left_out: u64,
}

/// Target of copies. Paths are relative and have no `..`; a folder precedes its content.
pub(super) trait Sink {
    fn folder(&mut self, path: &Path, mode: u32) -> io::Result<()>;

    /// Copies a file of `size` bytes. Fewer are an error: the file changed meanwhile.
    fn file(&mut self, path: &Path, mode: u32, size: u64, content: &mut dyn Read) -> io::Result<()>;

    /// Copies a link with its target. Returns false if links are skipped.
    fn link(&mut self, path: &Path, target: &Path) -> io::Result<bool> {
        let _ = (path, target);
        Ok(false)
    }
}

/// Running totals of a copy, with its limits.
#[derive(Debug)]
pub(super) struct Tally {
    copied: Copied,
    entries: u64,
}

impl Tally {
    pub(super) fn new() -> Self {
        Self { copied: Copied::default(), entries: MOST_ENTRIES }
    }

    pub(super) fn entry(&mut self, path: &Path) -> io::Result<()> {
        self.entries = self.entries.checked_sub(1).ok_or_else(|| io::Error::other("it has too many files"))?;
        if path.components().count() > DEEPEST {
            return Err(io::Error::other(format!("its folders lie more than {DEEPEST} deep")));
        }
        Ok(())
    }

    pub(super) fn file(&mut self, size: u64) -> io::Result<()> {
        self.copied.files += 1;
        self.copied.bytes = self.copied.bytes.saturating_add(size);
        let is_too_much = self.copied.bytes > MOST_BYTES;
        if is_too_much { Err(io::Error::other(format!("it has more than {MOST_BYTES} bytes"))) } else { Ok(()) }
    }

    pub(super) fn left_out(&mut self) {
        self.copied.left_out += 1;
    }

    pub(super) fn copied(&self) -> Copied {
        self.copied
    }
}

/// Copies the content of a folder. No link is followed, since programs may change them
/// concurrently: each entry is opened beneath a handle of its folder.
pub(super) fn walk(from: &Dir, to: &mut dyn Sink) -> io::Result<Copied> {
    let mut tally = Tally::new();
    walk_folder(from, Path::new(""), to, &mut tally)?;
    Ok(tally.copied())
}

fn walk_folder(from: &Dir, path: &Path, to: &mut dyn Sink, tally: &mut Tally) -> io::Result<()> {
    for entry in from.entries()? {
        let entry = entry?;
        let path = path.join(entry.file_name());
        tally.entry(&path)?;
        match walk_entry(&entry, from, &path, to, tally) {
            // An entry that disappeared meanwhile is skipped.
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            done => done?,
        }
    }
    Ok(())
}

fn walk_entry(entry: &DirEntry, from: &Dir, path: &Path, to: &mut dyn Sink, tally: &mut Tally) -> io::Result<()> {
    let (name, kind) = (entry.file_name(), entry.file_type()?);
    if kind.is_dir() {
        let folder = cap_fs_ext::DirExt::open_dir_nofollow(from, &name)?;
        to.folder(path, mode_of(&folder.dir_metadata()?.permissions()))?;
        return walk_folder(&folder, path, to, tally);
    }
    if kind.is_symlink() {
        if !to.link(path, &from.read_link_contents(&name)?)? {
            tally.left_out();
        }
        return Ok(());
    }
    if !kind.is_file() {
        tally.left_out();
        return Ok(());
    }
    let mut options = OpenOptions::new();
    cap_fs_ext::OpenOptionsSyncExt::nonblock(options.read(true), true);
    cap_fs_ext::OpenOptionsFollowExt::follow(&mut options, cap_fs_ext::FollowSymlinks::No);
    let mut source = from.open_with(&name, &options)?;
    let metadata = source.metadata()?;
    if !metadata.is_file() {
        tally.left_out();
        return Ok(());
    }
    tally.file(metadata.len())?;
    to.file(path, mode_of(&metadata.permissions()), metadata.len(), &mut source)
}

/// Local target folder of copies. Existing entries stay, except files and links that a copy
/// replaces.
pub(super) struct Folder {
    dir: Dir,
    keeps_links: bool,
    /// Modes that are set at the end: a folder may be read-only.
    modes: Vec<(PathBuf, u32)>,
}

impl Folder {
    pub(super) fn new(dir: Dir) -> Self {
        Self { dir, keeps_links: false, modes: Vec::new() }
    }

    /// Keeps links as links, whatever their targets.
    pub(super) fn keeping_links(mut self) -> Self {
        self.keeps_links = true;
        self
    }

    /// Must be called after the last entry.
    pub(super) fn finish(self) -> io::Result<()> {
        let set = |(path, mode): (PathBuf, u32)| {
            permissions(mode).map_or(Ok(()), |mode| self.dir.set_permissions(path, mode))
        };
        self.modes.into_iter().rev().try_for_each(set)
    }

    /// Removes an entry that a new file or link replaces.
    fn clear(&self, path: &Path) -> io::Result<()> {
        match self.dir.remove_file(path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
            _ => Ok(()),
        }
    }
}

impl Sink for Folder {
    fn folder(&mut self, path: &Path, mode: u32) -> io::Result<()> {
        match self.dir.create_dir(path) {
            Ok(()) => self.modes.push((path.to_owned(), mode)),
            // The mode of an existing folder stays.
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists && self.dir.symlink_metadata(path)?.is_dir() => {}
            Err(e) => return Err(e),
        }
        Ok(())
    }

    fn file(&mut self, path: &Path, mode: u32, size: u64, content: &mut dyn Read) -> io::Result<()> {
        self.clear(path)?;
        let mut file = self.dir.open_with(path, OpenOptions::new().write(true).create_new(true))?;
        if io::copy(&mut content.take(size), &mut file)? < size {
            return Err(changed(path));
        }
        permissions(mode).map_or(Ok(()), |mode| file.set_permissions(mode))
    }

    fn link(&mut self, path: &Path, target: &Path) -> io::Result<bool> {
        if self.keeps_links {
            self.clear(path)?;
            cap_fs_ext::DirExt::symlink(&self.dir, target, path)?;
        }
        Ok(self.keeps_links)
    }
}

#[cfg(unix)]
fn mode_of(permissions: &Permissions) -> u32 {
    cap_std::fs::PermissionsExt::mode(permissions) & MODE
}

#[cfg(unix)]
fn permissions(mode: u32) -> Option<Permissions> {
    Some(cap_std::fs::PermissionsExt::from_mode(mode))
}

/// Other systems have no modes: copies may be read, written and executed.
#[cfg(not(unix))]
fn mode_of(_: &Permissions) -> u32 {
    MODE
}

#[cfg(not(unix))]
fn permissions(_: u32) -> Option<Permissions> {
    None
}

pub(super) fn changed(path: &Path) -> io::Error {
    io::Error::other(format!("'{}' changed while it was copied", path.display()))
}

/// Returns the path for a sink; `None` if it leads out of the target.
pub(super) fn plain(path: &Path) -> Option<PathBuf> {
    let mut parts = path.components().filter(|part| *part != Component::CurDir);
    let is_plain = parts.clone().all(|part| matches!(part, Component::Normal(_)));
    is_plain.then(|| parts.by_ref().collect())
}

/// Opens a folder of the application, and creates it if `make` is set.
pub(super) fn open(folder: &Path, make: bool) -> Result<Dir> {
    let made = if make { std::fs::create_dir_all(folder) } else { Ok(()) };
    let opened = made.and_then(|()| Dir::open_ambient_dir(folder, ambient_authority()));
    opened.map_err(|e| Error::tool(format!("the folder '{}' cannot be opened: {e}", folder.display())))
}

/// Returns the error of a failed copy.
pub(super) fn uncopied(e: &io::Error) -> Error {
    Error::tool(format!("the files cannot be copied: {e}"))
}
