//! [`Place`]: where the files of a workspace lie.

use std::{
    fmt::Debug,
    io,
    path::{Path, PathBuf},
};

use super::Limits;

/// Something that has a name in a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Entry {
    /// Its name, without the folder.
    pub name: String,
    /// What it is.
    pub kind: EntryKind,
    /// Bytes of a file; none if they were not asked for.
    pub size: Option<u64>,
    /// Nobody may write it, says its mode.
    pub read_only: bool,
}

/// What an [`Entry`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link, whatever it leads to.
    Link,
    /// A pipe, a device, a socket.
    Other,
}

impl Entry {
    /// A regular file of so many bytes, which may be written.
    pub fn file(name: impl Into<String>, size: u64) -> Self {
        Self { size: Some(size), ..Self::new(name, EntryKind::File) }
    }

    /// An entry of which no more is known.
    pub fn new(name: impl Into<String>, kind: EntryKind) -> Self {
        Self { name: name.into(), kind, size: None, read_only: false }
    }

    /// Marks it as one that nobody may write.
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

/// Where files lie, and what decides which paths lead out of there. Its calls block.
pub(crate) trait Place: Debug + Send + Sync {
    /// The folder that relative paths begin at.
    fn root(&self) -> &Path;

    /// The path that a model means, relative to the root where it lies below. None if it certainly leads out.
    fn relative(&self, path: &Path) -> Option<PathBuf>;

    /// The path without the links on its way, as far as they can be seen.
    fn real(&self, path: &Path) -> io::Result<PathBuf>;

    /// What has this path, where a link is a link; none if nothing has.
    fn stat(&self, path: &Path) -> io::Result<Option<Entry>>;

    /// What a folder holds; a link is none.
    fn list(&self, path: &Path) -> io::Result<Vec<Entry>>;

    /// The content of a regular file.
    fn read(&self, path: &Path, limits: &Limits) -> io::Result<Vec<u8>>;

    /// Makes `content` the content of a file, at once and as a whole; folders on the way are made, a link stays one. True if it is new: then it
    /// has the permissions of the file `like`, where the place can give them.
    fn replace(&self, path: &Path, content: &[u8], like: Option<&Path>) -> io::Result<bool>;

    /// Removes a regular file.
    fn remove(&self, path: &Path, limits: &Limits) -> io::Result<()>;
}

/// What is told of a folder where a file is needed.
pub(crate) fn is_a_folder() -> io::Error {
    io::Error::new(io::ErrorKind::IsADirectory, "it is a directory: use list_files")
}

/// What is told of a pipe, a device or a socket.
pub(crate) fn is_not_regular() -> io::Error {
    io::Error::other("it is not a regular file")
}
