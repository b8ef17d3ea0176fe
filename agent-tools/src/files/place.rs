//! [`Place`]: storage of a workspace's files.

use std::{
    fmt::Debug,
    io,
    path::{Path, PathBuf},
};

use super::Limits;

/// Directory entry.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Entry {
    /// Name, without the folder.
    pub name: String,
    /// Kind of the entry.
    pub kind: EntryKind,
    /// Size of a file in bytes; `None` if it was not requested.
    pub size: Option<u64>,
    /// True if the file mode allows nobody to write.
    pub read_only: bool,
}

/// Kind of an [`Entry`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EntryKind {
    /// Regular file.
    File,
    /// Folder.
    Folder,
    /// Symbolic link, whatever its target.
    Link,
    /// Pipe, device or socket.
    Other,
}

impl Entry {
    /// Creates the entry of a writable regular file of `size` bytes.
    pub fn file(name: impl Into<String>, size: u64) -> Self {
        Self { size: Some(size), ..Self::new(name, EntryKind::File) }
    }

    /// Creates an entry without further details.
    pub fn new(name: impl Into<String>, kind: EntryKind) -> Self {
        Self { name: name.into(), kind, size: None, read_only: false }
    }

    /// Marks the entry as read-only.
    #[must_use]
    pub fn read_only(mut self, is: bool) -> Self {
        self.read_only = is;
        self
    }

    pub(crate) fn is_file(&self) -> bool {
        self.kind == EntryKind::File
    }

    pub(crate) fn is_folder(&self) -> bool {
        self.kind == EntryKind::Folder
    }
}

/// Storage of files, which decides which paths leave the workspace. Its methods block.
pub(crate) trait Place: Debug + Send + Sync {
    /// Returns the folder that relative paths start at.
    fn root(&self) -> &Path;

    /// Resolves a path from a model, relative to the root if it lies below. `None` if it certainly
    /// leaves the workspace.
    fn relative(&self, path: &Path) -> Option<PathBuf>;

    /// Resolves the symbolic links of a path, as far as they are visible.
    fn real(&self, path: &Path) -> io::Result<PathBuf>;

    /// Returns the entry at a path without following a link; `None` if the path does not exist.
    fn stat(&self, path: &Path) -> io::Result<Option<Entry>>;

    /// Lists a folder; a link to a folder is not a folder.
    fn list(&self, path: &Path) -> io::Result<Vec<Entry>>;

    /// Reads a regular file.
    fn read(&self, path: &Path, limits: &Limits) -> io::Result<Vec<u8>>;

    /// Replaces the content of a file atomically; missing folders are created, a link stays a link.
    /// Returns true if the file is new: then it has the permissions of the file `like`, where the
    /// storage supports them.
    fn replace(&self, path: &Path, content: &[u8], like: Option<&Path>) -> io::Result<bool>;

    /// Removes a regular file.
    fn remove(&self, path: &Path, limits: &Limits) -> io::Result<()>;
}

/// Returns the error for a folder where a file is needed.
pub(crate) fn is_a_folder() -> io::Error {
    io::Error::new(io::ErrorKind::IsADirectory, "it is a directory: use list_files")
}

/// Returns the error for a pipe, a device or a socket.
pub(crate) fn is_not_regular() -> io::Error {
    io::Error::other("it is not a regular file")
}
