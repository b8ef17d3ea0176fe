//! [`Directory`]: a directory of this machine, and nothing outside it.

use std::{
    io::{self, ErrorKind, Read, Write},
    path::{Component, Path, PathBuf},
};

use agent_core::{Error, Result, run::new_id};
use cap_fs_ext::{DirExt, MetadataExt, OpenOptionsSyncExt};
use cap_std::{
    ambient_authority,
    fs::{Dir, DirEntry, File, FileType, OpenOptions},
};

use super::{
    Limits,
    place::{Entry, EntryKind, Place, is_a_folder, is_not_regular},
};

/// Directory of this machine. The operating system resolves every path beneath an open handle of
/// the directory.
#[derive(Debug)]
pub(crate) struct Directory {
    dir: Dir,
    /// Real path of the directory, and the path by which it was opened: a model may use either.
    paths: [PathBuf; 2],
}

impl Directory {
    pub(crate) fn open(dir: &Path, what: &str) -> Result<Self> {
        let open = || {
            let paths = [dir.canonicalize()?, std::path::absolute(dir)?];
            let dir = Dir::open_ambient_dir(&paths[0], ambient_authority())?;
            Ok(Self { dir, paths })
        };
        open().map_err(|e: io::Error| Error::config(format!("cannot open the {what} '{}': {e}", dir.display())))
    }

    /// Opens a regular file whose size is within the limits. Never blocks on a pipe or a device.
    fn open_regular(&self, path: &Path, limits: &Limits) -> io::Result<File> {
        let file = self.dir.open_with(or_dot(path), OpenOptions::new().read(true).nonblock(true))?;
        let metadata = file.metadata()?;
        if metadata.is_dir() {
            return Err(is_a_folder());
        }
        if !metadata.is_file() {
            return Err(is_not_regular());
        }
        if metadata.nlink() > 1 && !limits.hard_links {
            let links = "it has several hard links, so it may be a file from outside the workspace";
            return Err(io::Error::other(links));
        }
        limits.check_size(metadata.len())?;
        Ok(file)
    }
}

impl Place for Directory {
    fn root(&self) -> &Path {
        &self.paths[0]
    }

    fn relative(&self, path: &Path) -> Option<PathBuf> {
        if path.is_relative() {
            return Some(path.components().filter(|c| *c != Component::CurDir).collect());
        }
        self.paths.iter().find_map(|root| path.strip_prefix(root).ok()).map(Path::to_owned)
    }

    fn real(&self, path: &Path) -> io::Result<PathBuf> {
        let real = self.dir.canonicalize(or_dot(path))?;
        Ok(real.components().filter(|c| *c != Component::CurDir).collect())
    }

    fn stat(&self, path: &Path) -> io::Result<Option<Entry>> {
        match self.dir.symlink_metadata(or_dot(path)) {
            Ok(found) => {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                let entry = Entry::new(name, kind(found.file_type())).read_only(found.permissions().readonly());
                Ok(Some(Entry { size: Some(found.len()), ..entry }))
            }
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
            Err(e) => Err(e),
        }
    }

    fn list(&self, path: &Path) -> io::Result<Vec<Entry>> {
        let dir = if path.as_os_str().is_empty() { self.dir.try_clone()? } else { self.dir.open_dir_nofollow(path)? };
        let entry = |entry: DirEntry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            Some(Entry::new(name, kind(entry.file_type().ok()?)))
        };
        // An entry that disappeared meanwhile is skipped.
        Ok(dir.entries()?.flatten().filter_map(entry).collect())
    }

    fn read(&self, path: &Path, limits: &Limits) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        // The file may grow while it is read.
        let most = limits.file_bytes.saturating_add(1);
        self.open_regular(path, limits)?.take(most).read_to_end(&mut bytes)?;
        limits.check_size(bytes.len() as u64)?;
        Ok(bytes)
    }

    fn replace(&self, path: &Path, content: &[u8], like: Option<&Path>) -> io::Result<bool> {
        let root = &self.dir;
        // A link to a file below the root stays a link: its target is replaced.
        let path = match root.symlink_metadata(path) {
            Ok(metadata) if metadata.is_symlink() => root.canonicalize(path)?,
            _ => path.to_owned(),
        };
        let name = path.file_name().ok_or_else(|| io::Error::new(ErrorKind::IsADirectory, "it is a directory"))?;
        let folder = match path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            Some(parent) => {
                root.create_dir_all(parent)?;
                root.open_dir(parent)?
            }
            None => root.try_clone()?,
        };
        let permissions = match folder.symlink_metadata(name) {
            Ok(old) if old.is_dir() => return Err(io::Error::new(ErrorKind::IsADirectory, "it is a directory")),
            Ok(old) if !old.is_file() => return Err(is_not_regular()),
            Ok(old) if old.permissions().readonly() => return Err(io::Error::other("it is marked as read-only")),
            Ok(old) => Some(old.permissions()),
            Err(e) if e.kind() == ErrorKind::NotFound => None,
            Err(e) => return Err(e),
        };
        let is_new = permissions.is_none();
        let like = like.and_then(|like| root.metadata(like).ok()).map(|like| like.permissions());
        let permissions = permissions.or(like);
        let draft = format!(".{}.draft", new_id());
        let written = folder.open_with(&draft, OpenOptions::new().write(true).create_new(true)).and_then(|mut file| {
            file.write_all(content)?;
            permissions.map_or(Ok(()), |permissions| file.set_permissions(permissions))?;
            folder.rename(&draft, &folder, name)
        });
        if written.is_err() {
            // The first error is reported; a temporary file that was never created cannot be
            // removed.
            drop(folder.remove_file(&draft));
        }
        written.map(|()| is_new)
    }

    fn remove(&self, path: &Path, limits: &Limits) -> io::Result<()> {
        self.open_regular(path, limits).and_then(|_| self.dir.remove_file(path))
    }
}

fn or_dot(path: &Path) -> &Path {
    if path.as_os_str().is_empty() { Path::new(".") } else { path }
}

fn kind(of: FileType) -> EntryKind {
    match of {
        t if t.is_file() => EntryKind::File,
        t if t.is_dir() => EntryKind::Folder,
        t if t.is_symlink() => EntryKind::Link,
        _ => EntryKind::Other,
    }
}
