//! Content of a plugin's folder.

use std::{
    collections::BTreeMap,
    fs::{self, OpenOptions, Permissions},
    io::{self, Read, Write},
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
    sync::Arc,
};

use agent_core::{Error, Result};
use sha2::{Digest, Sha256};
use tempfile::TempDir;

const MOST_FILES: usize = 2_000;
const MOST_DEPTH: usize = 16;
const MOST_BYTES: u64 = 32 << 20;

/// Snapshot of the folder, and a private copy of it: the code that runs is the code that was
/// reviewed.
#[derive(Clone, Debug)]
pub(super) struct Folder {
    /// Original path.
    pub(super) from: PathBuf,
    files: BTreeMap<String, File>,
    copy: Arc<TempDir>,
}

#[derive(Clone, Debug)]
struct File {
    bytes: Vec<u8>,
    is_program: bool,
}

impl Folder {
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) for a link, a file that is not regular,
    /// and for a folder that exceeds the limits.
    pub(super) fn read(dir: &Path) -> Result<Self> {
        let dir = dir.canonicalize().map_err(|e| Error::config(format!("'{}': {e}", dir.display())))?;
        let no_copy = |e: io::Error| Error::config(format!("there is no place for a copy of a plugin: {e}"));
        let copy = tempfile::Builder::new().prefix("agent-plugin-").tempdir().map_err(no_copy)?;
        let mut folder = Self { from: dir.clone(), files: BTreeMap::new(), copy: Arc::new(copy) };
        folder.walk(&dir, "", &mut MOST_BYTES.clone(), 0)?;
        folder.write().map_err(no_copy)?;
        Ok(folder)
    }

    /// Returns the folder of the copy.
    pub(super) fn dir(&self) -> &Path {
        self.copy.path()
    }

    fn write(&self) -> io::Result<()> {
        for (path, file) in &self.files {
            let path = self.dir().join(path);
            fs::create_dir_all(path.parent().unwrap_or(self.dir()))?;
            let mode = if file.is_program { 0o555 } else { 0o444 };
            OpenOptions::new().write(true).create_new(true).mode(mode).open(&path)?.write_all(&file.bytes)?;
        }
        // A sandbox may run as another user.
        fs::set_permissions(self.dir(), Permissions::from_mode(0o755))
    }

    fn walk(&mut self, dir: &Path, above: &str, left: &mut u64, depth: usize) -> Result<()> {
        let wrong = |path: &str, why: String| Error::config(format!("plugin '{}': '{path}': {why}", dir.display()));
        if depth > MOST_DEPTH {
            return Err(wrong(above, format!("folders are more than {MOST_DEPTH} deep")));
        }
        for entry in fs::read_dir(dir).map_err(|e| wrong(above, e.to_string()))? {
            let entry = entry.map_err(|e| wrong(above, e.to_string()))?;
            let name = entry.file_name().into_string().map_err(|_| wrong(above, "a name is not UTF-8".to_owned()))?;
            let path = if above.is_empty() { name } else { format!("{above}/{name}") };
            let kind = entry.file_type().map_err(|e| wrong(&path, e.to_string()))?;
            if kind.is_dir() {
                self.walk(&entry.path(), &path, left, depth + 1)?;
                continue;
            }
            if !kind.is_file() {
                return Err(wrong(&path, "links and special files are not taken".to_owned()));
            }
            let file = read(&entry.path(), *left + 1).map_err(|e| wrong(&path, e.to_string()))?;
            *left = left
                .checked_sub(file.bytes.len() as u64)
                .ok_or_else(|| wrong(&path, format!("the folder has more than {} MiB", MOST_BYTES >> 20)))?;
            self.files.insert(path, file);
            if self.files.len() > MOST_FILES {
                return Err(wrong(above, format!("the folder has more than {MOST_FILES} files")));
            }
        }
        Ok(())
    }

    /// Returns a digest of all names and bytes.
    pub(super) fn digest(&self) -> String {
        digest(self.files.iter())
    }

    /// Returns a digest of each file, by its path.
    pub(super) fn digests(&self) -> impl Iterator<Item = (&str, String)> {
        self.files.iter().map(|(path, file)| (path.as_str(), digest([(path, file)].into_iter())))
    }

    /// Returns the text of a file, by its path in the folder.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) if the file is missing, or is not text.
    pub(super) fn text(&self, path: &str) -> Result<&str> {
        let file = self.files.get(path);
        let file = file.ok_or_else(|| Error::config(format!("'{path}' is not a file of the plugin")))?;
        std::str::from_utf8(&file.bytes).map_err(|_| Error::config(format!("'{path}' is not text")))
    }

    /// Returns the paths and sizes of the files below this path.
    pub(super) fn below(&self, path: &str) -> impl Iterator<Item = (&str, usize)> {
        let path = format!("{path}/");
        let files = self.files.iter().map(|(file, read)| (file.as_str(), read.bytes.len()));
        files.filter(move |(file, _)| file.starts_with(&path))
    }
}

fn digest<'a>(files: impl Iterator<Item = (&'a String, &'a File)>) -> String {
    let mut hash = Sha256::new();
    for (path, file) in files {
        for part in [path.as_bytes(), &[u8::from(file.is_program)], &file.bytes] {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Reads the first `most` bytes of a file. A link or a pipe that replaces the file meanwhile is
/// neither followed nor waited for.
fn read(path: &Path, most: u64) -> io::Result<File> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let found = file.metadata()?;
    if !found.is_file() {
        return Err(io::Error::other("links and special files are not taken"));
    }
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes)?;
    Ok(File { bytes, is_program: found.permissions().mode() & 0o100 != 0 })
}
