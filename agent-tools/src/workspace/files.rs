//! Access to files below one directory, and to nothing else.

use std::{
    fmt,
    io::{self, ErrorKind, Read, Write},
    path::{Component, Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use agent_core::{Error, Result, run::new_id};
use cap_fs_ext::{MetadataExt, OpenOptionsSyncExt};
use cap_std::{
    ambient_authority,
    fs::{Dir, File, OpenOptions},
};

use super::{nearest, seen::Known};

/// The files below one directory. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Files {
    root: Arc<Root>,
    pub(super) limits: Limits,
}

struct Root {
    dir: Dir,
    /// The directory's real path, and the one that it was opened by: a model may use either.
    paths: [PathBuf; 2],
    /// What it is, in error messages.
    what: &'static str,
    /// Held while a file is changed, so that two edits of one file do not undo each other.
    changing: Mutex<()>,
    /// What agents have seen of the files.
    known: Known,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) file_bytes: u64,
    pub(super) output_bytes: usize,
    pub(super) search_time: Duration,
    pub(super) hard_links: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self { file_bytes: 10 << 20, output_bytes: 64 << 10, search_time: Duration::from_secs(10), hard_links: false }
    }
}

impl Files {
    /// The files below `dir`, which error messages call `what`.
    pub(crate) fn open_root(dir: &Path, what: &'static str) -> Result<Self> {
        let open = || {
            let paths = [dir.canonicalize()?, std::path::absolute(dir)?];
            let dir = Dir::open_ambient_dir(&paths[0], ambient_authority())?;
            Ok(Root { dir, paths, what, changing: Mutex::default(), known: Known::default() })
        };
        let failed = |e: io::Error| Error::config(format!("cannot open the {what} '{}': {e}", dir.display()));
        Ok(Self { root: Arc::new(open().map_err(failed)?), limits: Limits::default() })
    }

    pub(crate) fn root_path(&self) -> &Path {
        &self.root.paths[0]
    }

    pub(crate) fn root(&self) -> &Dir {
        &self.root.dir
    }

    /// The path below the root that a model means. Whether it stays below is decided when it is opened.
    pub(crate) fn relative(&self, path: &str) -> Result<PathBuf> {
        let path = Path::new(path.trim());
        if path.is_relative() {
            return Ok(path.components().filter(|c| *c != Component::CurDir).collect());
        }
        let below = self.root.paths.iter().find_map(|root| path.strip_prefix(root).ok());
        below.map(Path::to_owned).ok_or_else(|| self.outside(path))
    }

    /// The content of a regular file.
    pub(crate) fn read(&self, path: &Path) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let file = self.open_regular(&self.root.dir, path).map_err(|e| self.explain(path, &e))?;
        // The file may grow while it is read.
        file.take(self.limits.file_bytes.saturating_add(1))
            .read_to_end(&mut bytes)
            .map_err(|e| self.explain(path, &e))?;
        self.allow_size(path, bytes.len() as u64)?;
        Ok(bytes)
    }

    /// The content of a regular file; none if there is no such file.
    pub(super) fn read_if_there(&self, path: &Path) -> Result<Option<Vec<u8>>> {
        match self.root.dir.symlink_metadata(path) {
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
            Ok(found) if !found.is_file() && !found.is_dir() && !found.is_symlink() => {
                Err(self.explain(path, &io::Error::other("it is not a regular file")))
            }
            _ => self.read(path).map(Some),
        }
    }

    /// The content of a regular file that is text.
    pub(super) fn read_text(&self, path: &Path) -> Result<String> {
        let not_text = |_| Error::tool(format!("'{}' is not UTF-8 text: it cannot be edited", shown(path)));
        String::from_utf8(self.read(path)?).map_err(not_text)
    }

    /// Removes a regular file.
    pub(super) fn remove(&self, path: &Path) -> Result<()> {
        let removed = self.open_regular(&self.root.dir, path).and_then(|_| self.root.dir.remove_file(path));
        removed.map_err(|e| self.explain(path, &e))
    }

    /// Refuses a content of the file at `path` that has more bytes than files may have.
    pub(super) fn allow_size(&self, path: &Path, bytes: u64) -> Result<()> {
        self.check_size(bytes).map_err(|e| self.explain(path, &e))
    }

    /// Opens a regular file of a size that may be read. Nothing else is waited for or read from: not a pipe, not a device.
    pub(super) fn open_regular(&self, dir: &Dir, path: &Path) -> io::Result<File> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        let file = dir.open_with(path, OpenOptions::new().read(true).nonblock(true))?;
        let metadata = file.metadata()?;
        if metadata.is_dir() {
            return Err(io::Error::new(ErrorKind::IsADirectory, "it is a directory: use list_files"));
        }
        if !metadata.is_file() {
            return Err(io::Error::other("it is not a regular file"));
        }
        if metadata.nlink() > 1 && !self.limits.hard_links {
            let links = "it has several hard links, so it may be a file from outside the workspace";
            return Err(io::Error::other(links));
        }
        self.check_size(metadata.len())?;
        Ok(file)
    }

    fn check_size(&self, bytes: u64) -> io::Result<()> {
        let most = self.limits.file_bytes;
        if bytes <= most {
            return Ok(());
        }
        Err(io::Error::new(ErrorKind::FileTooLarge, format!("it has {bytes} bytes, more than the limit of {most}")))
    }

    pub(super) fn known(&self) -> &Known {
        &self.root.known
    }

    /// Held while a file is changed.
    pub(super) fn changing(&self) -> MutexGuard<'_, ()> {
        self.root.changing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes `content` the content of a file, at once and as a whole; folders on the way are made. True if it is new.
    pub(crate) fn replace(&self, path: &Path, content: &[u8]) -> Result<bool> {
        self.replace_like(path, content, None)
    }

    /// As [`replace`](Self::replace); a file that is new has the permissions of the file `like`.
    pub(super) fn replace_like(&self, path: &Path, content: &[u8], like: Option<&Path>) -> Result<bool> {
        self.allow_size(path, content.len() as u64)?;
        self.try_replace(path, content, like).map_err(|e| self.explain(path, &e))
    }

    /// Refuses a file that is there and must not be replaced or removed.
    pub(super) fn allow_change(&self, path: &Path) -> Result<()> {
        let is_fixed = self.root.dir.metadata(path).is_ok_and(|found| found.permissions().readonly());
        let refused = || self.explain(path, &io::Error::other("it is marked as read-only"));
        if is_fixed { Err(refused()) } else { Ok(()) }
    }

    fn try_replace(&self, path: &Path, content: &[u8], like: Option<&Path>) -> io::Result<bool> {
        let root = &self.root.dir;
        // A link to a file below the root stays a link: the file that it leads to is replaced.
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
            Ok(old) if !old.is_file() => return Err(io::Error::other("it is not a regular file")),
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
            // The error that is told is the first one; a draft that was never made cannot be removed.
            drop(folder.remove_file(&draft));
        }
        written.map(|()| is_new)
    }

    /// What a model can do about an error.
    pub(super) fn explain(&self, path: &Path, error: &io::Error) -> Error {
        // An error of the operating system has a number; the one for a path that leads out has none.
        if error.kind() == ErrorKind::PermissionDenied && error.raw_os_error().is_none() {
            return self.outside(path);
        }
        let shown = shown(path);
        if error.kind() == ErrorKind::NotFound {
            let near = nearest::files(self, path);
            let hint = if near.is_empty() { String::new() } else { format!("; did you mean {}?", near.join(", ")) };
            return Error::tool(format!("'{shown}' does not exist{hint}"));
        }
        Error::tool(format!("'{shown}' cannot be used: {error}"))
    }

    fn outside(&self, path: &Path) -> Error {
        let what = self.root.what;
        Error::tool(format!("'{}' is outside the {what}: use a path relative to its root", path.display()))
    }
}

/// A path below the root, as a model is shown it.
pub(crate) fn shown(path: &Path) -> String {
    if path.as_os_str().is_empty() { ".".to_owned() } else { path.display().to_string() }
}

impl fmt::Debug for Files {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Files").field("root", &self.root_path()).field("limits", &self.limits).finish()
    }
}
