//! [`InSandbox`]: storage in a sandbox.

use std::{
    io::{self, ErrorKind},
    path::{Component, Path, PathBuf},
    sync::Arc,
};

use agent_core::Result;
use bytes::Bytes;
use tokio::runtime::Handle;

use super::{
    files::Limits,
    place::{Entry, EntryKind, Place, is_a_folder, is_not_regular},
};
use crate::sandbox::Sandbox;

/// Files of a sandbox. The sandbox confines paths.
///
/// Its methods run on blocking threads of the runtime, where they wait for the sandbox's futures.
#[derive(Debug)]
pub(super) struct InSandbox(Arc<dyn Sandbox>);

impl InSandbox {
    pub(super) fn new(sandbox: Arc<dyn Sandbox>) -> Self {
        Self(sandbox)
    }

    fn wait<T>(work: impl Future<Output = Result<T>>) -> io::Result<T> {
        Handle::try_current().map_err(io::Error::other)?.block_on(work).map_err(io::Error::other)
    }

    /// Returns the reason why a file cannot be used, as far as it can be determined.
    fn refused(&self, path: &Path, limits: &Limits) -> io::Result<()> {
        match self.stat(path)? {
            None => Err(ErrorKind::NotFound.into()),
            Some(found) => match found.kind {
                EntryKind::Folder => Err(is_a_folder()),
                EntryKind::Other => Err(is_not_regular()),
                EntryKind::File | EntryKind::Link => limits.check_size(found.size.unwrap_or(0)),
            },
        }
    }
}

impl Place for InSandbox {
    fn root(&self) -> &Path {
        Path::new(self.0.root())
    }

    fn relative(&self, path: &Path) -> Option<PathBuf> {
        let below = path.strip_prefix(self.root()).unwrap_or(path);
        Some(below.components().filter(|c| *c != Component::CurDir).collect())
    }

    fn real(&self, path: &Path) -> io::Result<PathBuf> {
        Ok(path.to_owned())
    }

    fn stat(&self, path: &Path) -> io::Result<Option<Entry>> {
        Self::wait(self.0.stat(&name(path)))
    }

    fn list(&self, path: &Path) -> io::Result<Vec<Entry>> {
        let unnamed = |entry: &Entry| !matches!(&*entry.name, "" | "." | "..") && !entry.name.contains('/');
        match Self::wait(self.0.list(&name(path))) {
            Ok(entries) => Ok(entries.into_iter().filter(unnamed).collect()),
            Err(e) => match self.stat(path)? {
                None => Err(ErrorKind::NotFound.into()),
                Some(_) => Err(e),
            },
        }
    }

    fn read(&self, path: &Path, limits: &Limits) -> io::Result<Vec<u8>> {
        let read = match Self::wait(self.0.read(&name(path))) {
            Ok(bytes) => bytes,
            Err(e) => return Err(self.refused(path, limits).err().unwrap_or(e)),
        };
        limits.check_size(read.len() as u64)?;
        Ok(read.into())
    }

    fn replace(&self, path: &Path, content: &[u8], _: Option<&Path>) -> io::Result<bool> {
        let found = self.stat(path)?;
        match &found {
            Some(found) if found.is_folder() => {
                return Err(io::Error::new(ErrorKind::IsADirectory, "it is a directory"));
            }
            Some(found) if found.kind == EntryKind::Other => return Err(is_not_regular()),
            Some(found) if found.read_only && found.is_file() => {
                return Err(io::Error::other("it is marked as read-only"));
            }
            _ => {}
        }
        Self::wait(self.0.write(&name(path), Bytes::copy_from_slice(content)))?;
        Ok(found.is_none())
    }

    fn remove(&self, path: &Path, limits: &Limits) -> io::Result<()> {
        self.refused(path, limits)?;
        Self::wait(self.0.remove(&name(path)))
    }
}

/// Converts a path for a sandbox. These paths were made from text or entry names, so they are
/// UTF-8.
fn name(path: &Path) -> String {
    if path.as_os_str().is_empty() { ".".to_owned() } else { path.to_string_lossy().into_owned() }
}
