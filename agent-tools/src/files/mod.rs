//! [`Files`]: file access within one storage, for tools and for sandboxes.

mod directory;
mod nearest;
#[cfg_attr(not(feature = "sandbox"), expect(unreachable_pub, reason = "sandboxes make it public"))]
pub(crate) mod place;
mod protected;
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
    protected::is_protected,
    seen::Known,
};

/// Files of one storage. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Files {
    root: Arc<Root>,
    pub(crate) limits: Limits,
}

struct Root {
    place: Box<dyn Place>,
    /// Name of the storage in error messages.
    what: &'static str,
    /// Held while a file is changed, so that concurrent edits of a file do not undo each other.
    changing: Mutex<()>,
    /// File contents that agents know.
    known: Known,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) file_bytes: u64,
    pub(crate) output_bytes: usize,
    pub(crate) search_time: Duration,
    pub(crate) hard_links: bool,
    /// Files that programs outside execute are not changed.
    pub(crate) protects: bool,
}

impl Default for Limits {
    fn default() -> Self {
        let search_time = Duration::from_secs(10);
        Self { file_bytes: 10 << 20, output_bytes: 64 << 10, search_time, hard_links: false, protects: false }
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
    /// Opens the files below `dir`, which error messages call `what`.
    pub(crate) fn open_root(dir: &Path, what: &'static str) -> Result<Self> {
        Ok(Self::of(Directory::open(dir, what)?, what))
    }

    pub(crate) fn of(place: impl Place + 'static, what: &'static str) -> Self {
        let root = Root { place: Box::new(place), what, changing: Mutex::default(), known: Known::default() };
        Self { root: Arc::new(root), limits: Limits::default() }
    }

    /// Sets the maximum size in bytes of files that are read and written.
    #[cfg(feature = "sandbox")]
    pub(crate) fn up_to(mut self, bytes: u64) -> Self {
        self.limits.file_bytes = bytes;
        self
    }

    pub(crate) fn root_path(&self) -> &Path {
        self.root.place.root()
    }

    /// Resolves a path from a model, relative to the root. Opening the path decides whether it
    /// stays below the root.
    pub(crate) fn relative(&self, path: &str) -> Result<PathBuf> {
        let path = Path::new(path.trim());
        self.root.place.relative(path).ok_or_else(|| self.outside(path))
    }

    /// Resolves the symbolic links of a path; returns the path unchanged if they cannot be read.
    pub(crate) fn real(&self, path: &Path) -> PathBuf {
        self.root.place.real(path).unwrap_or_else(|_| path.to_owned())
    }

    /// Resolves the symbolic links of a path.
    pub(crate) fn followed(&self, path: &Path) -> Result<PathBuf> {
        self.root.place.real(path).map_err(|e| self.explain(path, &e))
    }

    /// Returns the entry at a path without following a link; `None` if the path does not exist.
    pub(crate) fn stat(&self, path: &Path) -> Result<Option<Entry>> {
        self.root.place.stat(path).map_err(|e| self.explain(path, &e))
    }

    /// Returns true if the path leads to a regular file, or to a link whose target is unknown.
    pub(crate) fn is_file(&self, path: &Path) -> bool {
        let found = self.root.place.real(path).and_then(|real| self.root.place.stat(&real));
        matches!(found, Ok(Some(entry)) if matches!(entry.kind, EntryKind::File | EntryKind::Link))
    }

    /// Lists a folder by name; a link to a folder is not a folder.
    pub(crate) fn list(&self, path: &Path) -> Result<Vec<Entry>> {
        let mut entries = self.root.place.list(path).map_err(|e| self.explain(path, &e))?;
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    /// Reads a regular file.
    pub(crate) fn read(&self, path: &Path) -> Result<Vec<u8>> {
        self.root.place.read(path, &self.limits).map_err(|e| self.explain(path, &e))
    }

    /// Like [`read`](Self::read), with the plain I/O error instead of one that advises the model.
    pub(crate) fn read_quietly(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.root.place.read(path, &self.limits)
    }

    /// Reads a regular file; `None` if it does not exist.
    pub(crate) fn read_if_there(&self, path: &Path) -> Result<Option<Vec<u8>>> {
        match self.root.place.stat(path) {
            Ok(None) => Ok(None),
            Ok(Some(entry)) if entry.kind == EntryKind::Other => Err(self.explain(path, &is_not_regular())),
            _ => self.read(path).map(Some),
        }
    }

    /// Reads a regular text file.
    pub(crate) fn read_text(&self, path: &Path) -> Result<String> {
        let not_text = |_| Error::tool(format!("'{}' is not UTF-8 text: it cannot be edited", shown(path)));
        String::from_utf8(self.read(path)?).map_err(not_text)
    }

    /// Removes a regular file.
    pub(crate) fn remove(&self, path: &Path) -> Result<()> {
        self.allow_protected(path)?;
        self.root.place.remove(path, &self.limits).map_err(|e| self.explain(path, &e))
    }

    /// Rejects content that exceeds the maximum file size.
    pub(crate) fn allow_size(&self, path: &Path, bytes: u64) -> Result<()> {
        self.limits.check_size(bytes).map_err(|e| self.explain(path, &e))
    }

    /// Rejects a change of an existing file that must not be replaced or removed.
    pub(crate) fn allow_change(&self, path: &Path) -> Result<()> {
        let is_fixed = matches!(self.root.place.stat(&self.real(path)), Ok(Some(found)) if found.read_only);
        let refused = || self.explain(path, &io::Error::other("it is marked as read-only"));
        if is_fixed { Err(refused()) } else { Ok(()) }
    }

    /// Refuses a path that is protected, also through links.
    fn allow_protected(&self, path: &Path) -> Result<()> {
        let place = &self.root.place;
        // The file, and folders on its way, may not be there yet.
        let linked =
            path.ancestors().find_map(|above| Some(place.real(above).ok()?.join(path.strip_prefix(above).ok()?)));
        let is_protected = is_protected(path) || linked.is_some_and(|path| is_protected(&path));
        if !self.limits.protects || !is_protected {
            return Ok(());
        }
        let why = "programs outside execute what such files say, so that only the user may change them";
        Err(Error::tool(format!("'{}' is protected: {why}", shown(path))))
    }

    pub(crate) fn known(&self) -> &Known {
        &self.root.known
    }

    /// Returns the lock that is held while a file is changed.
    pub(crate) fn changing(&self) -> MutexGuard<'_, ()> {
        self.root.changing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces the content of a file atomically; missing folders are created. Returns true if the
    /// file is new.
    pub(crate) fn replace(&self, path: &Path, content: &[u8]) -> Result<bool> {
        self.replace_like(path, content, None)
    }

    /// Like [`replace`](Self::replace); a new file gets the permissions of the file `like`.
    pub(crate) fn replace_like(&self, path: &Path, content: &[u8], like: Option<&Path>) -> Result<bool> {
        self.allow_size(path, content.len() as u64)?;
        self.allow_protected(path)?;
        self.root.place.replace(path, content, like).map_err(|e| self.explain(path, &e))
    }

    /// Converts an error, with advice for the model.
    fn explain(&self, path: &Path, error: &io::Error) -> Error {
        // An operating system error has a code; the error for a path that leaves the root has none.
        if error.kind() == ErrorKind::PermissionDenied && error.raw_os_error().is_none() {
            return self.outside(path);
        }
        // An error of a sandbox already has a message.
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

/// Returns a path below the root in the form that models see.
pub(crate) fn shown(path: &Path) -> String {
    if path.as_os_str().is_empty() { ".".to_owned() } else { path.display().to_string() }
}

impl fmt::Debug for Files {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Files").field("root", &self.root_path()).field("limits", &self.limits).finish()
    }
}
