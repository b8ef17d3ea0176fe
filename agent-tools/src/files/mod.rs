//! [`Files`]: the files of one place, for tools and for sandboxes.

mod directory;
mod nearest;
#[cfg_attr(not(feature = "sandbox"), expect(unreachable_pub, reason = "sandboxes make it public"))]
pub(crate) mod place;
pub(crate) mod seen;
pub(crate) mod walk;

use std::{
    fmt,
    io::{self, ErrorKind},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use agent_core::{Error, Result};

use self::{
    directory::Directory,
    place::{Entry, EntryKind, Place, is_not_regular},
    seen::Known,
};

/// The files of one place. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Files {
    root: Arc<Root>,
    pub(crate) limits: Limits,
}

struct Root {
    place: Box<dyn Place>,
    /// What it is, in error messages.
    what: &'static str,
    /// Held while a file is changed, so that two edits of one file do not undo each other.
    changing: Mutex<()>,
    /// What agents have seen of the files.
    known: Known,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) file_bytes: u64,
    pub(crate) output_bytes: usize,
    pub(crate) search_time: Duration,
    pub(crate) hard_links: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self { file_bytes: 10 << 20, output_bytes: 64 << 10, search_time: Duration::from_secs(10), hard_links: false }
    }
}

impl Limits {
    pub(crate) fn check_size(&self, bytes: u64) -> io::Result<()> {
        let most = self.file_bytes;
        if bytes <= most {
            return Ok(());
        }
        Err(io::Error::new(ErrorKind::FileTooLarge, format!("it has {bytes} bytes, more than the limit of {most}")))
    }
}

impl Files {
    /// The files below `dir`, which error messages call `what`.
    pub(crate) fn open_root(dir: &Path, what: &'static str) -> Result<Self> {
        Ok(Self::of(Directory::open(dir, what)?, what))
    }

    pub(crate) fn of(place: impl Place + 'static, what: &'static str) -> Self {
        let root = Root { place: Box::new(place), what, changing: Mutex::default(), known: Known::default() };
        Self { root: Arc::new(root), limits: Limits::default() }
    }

    /// Sets the size in bytes up to which files are read and written.
    #[cfg(feature = "sandbox")]
    pub(crate) fn up_to(mut self, bytes: u64) -> Self {
        self.limits.file_bytes = bytes;
        self
    }

    pub(crate) fn root_path(&self) -> &Path {
        self.root.place.root()
    }

    /// The path below the root that a model means. Whether it stays below is decided when it is opened.
    pub(crate) fn relative(&self, path: &str) -> Result<PathBuf> {
        let path = Path::new(path.trim());
        self.root.place.relative(path).ok_or_else(|| self.outside(path))
    }

    /// The path without the links on its way; the path itself where they cannot be seen.
    pub(crate) fn real(&self, path: &Path) -> PathBuf {
        self.root.place.real(path).unwrap_or_else(|_| path.to_owned())
    }

    /// The path without the links on its way.
    pub(crate) fn followed(&self, path: &Path) -> Result<PathBuf> {
        self.root.place.real(path).map_err(|e| self.explain(path, &e))
    }

    /// What has this path, where a link is a link; none if nothing has.
    pub(crate) fn stat(&self, path: &Path) -> Result<Option<Entry>> {
        self.root.place.stat(path).map_err(|e| self.explain(path, &e))
    }

    /// True if the path leads to a regular file, or to a link of which no more is known.
    pub(crate) fn is_file(&self, path: &Path) -> bool {
        let found = self.root.place.real(path).and_then(|real| self.root.place.stat(&real));
        matches!(found, Ok(Some(entry)) if matches!(entry.kind, EntryKind::File | EntryKind::Link))
    }

    /// What a folder holds, by name; a link is none.
    pub(crate) fn list(&self, path: &Path) -> Result<Vec<Entry>> {
        let mut entries = self.root.place.list(path).map_err(|e| self.explain(path, &e))?;
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    /// The content of a regular file.
    pub(crate) fn read(&self, path: &Path) -> Result<Vec<u8>> {
        self.root.place.read(path, &self.limits).map_err(|e| self.explain(path, &e))
    }

    /// As [`read`](Self::read), where nobody is told why there is nothing.
    pub(crate) fn read_quietly(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.root.place.read(path, &self.limits)
    }

    /// The content of a regular file; none if there is no such file.
    pub(crate) fn read_if_there(&self, path: &Path) -> Result<Option<Vec<u8>>> {
        match self.root.place.stat(path) {
            Ok(None) => Ok(None),
            Ok(Some(entry)) if entry.kind == EntryKind::Other => Err(self.explain(path, &is_not_regular())),
            _ => self.read(path).map(Some),
        }
    }

    /// The content of a regular file that is text.
    pub(crate) fn read_text(&self, path: &Path) -> Result<String> {
        let not_text = |_| Error::tool(format!("'{}' is not UTF-8 text: it cannot be edited", shown(path)));
        String::from_utf8(self.read(path)?).map_err(not_text)
    }

    /// Removes a regular file.
    pub(crate) fn remove(&self, path: &Path) -> Result<()> {
        self.root.place.remove(path, &self.limits).map_err(|e| self.explain(path, &e))
    }

    /// Refuses a content of the file at `path` that has more bytes than files may have.
    pub(crate) fn allow_size(&self, path: &Path, bytes: u64) -> Result<()> {
        self.limits.check_size(bytes).map_err(|e| self.explain(path, &e))
    }

    /// Refuses a file that is there and must not be replaced or removed.
    pub(crate) fn allow_change(&self, path: &Path) -> Result<()> {
        let is_fixed = matches!(self.root.place.stat(&self.real(path)), Ok(Some(found)) if found.read_only);
        let refused = || self.explain(path, &io::Error::other("it is marked as read-only"));
        if is_fixed { Err(refused()) } else { Ok(()) }
    }

    pub(crate) fn known(&self) -> &Known {
        &self.root.known
    }

    /// Held while a file is changed.
    pub(crate) fn changing(&self) -> MutexGuard<'_, ()> {
        self.root.changing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes `content` the content of a file, at once and as a whole; folders on the way are made. True if it is new.
    pub(crate) fn replace(&self, path: &Path, content: &[u8]) -> Result<bool> {
        self.replace_like(path, content, None)
    }

    /// As [`replace`](Self::replace); a file that is new has the permissions of the file `like`.
    pub(crate) fn replace_like(&self, path: &Path, content: &[u8], like: Option<&Path>) -> Result<bool> {
        self.allow_size(path, content.len() as u64)?;
        self.root.place.replace(path, content, like).map_err(|e| self.explain(path, &e))
    }

    /// What a model can do about an error.
    fn explain(&self, path: &Path, error: &io::Error) -> Error {
        // An error of the operating system has a number; the one for a path that leads out has none.
        if error.kind() == ErrorKind::PermissionDenied && error.raw_os_error().is_none() {
            return self.outside(path);
        }
        // A sandbox has said it in words of its own.
        if let Some(said) = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>()) {
            return Error::new(said.kind(), said.message().to_owned()).with_retry(said.retry());
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
