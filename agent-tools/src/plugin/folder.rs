//! The bytes of a plugin's folder.

use std::{
    collections::BTreeMap,
    fs,
    io::Read,
    path::{Path, PathBuf},
};

use agent_core::{Error, Result};
use sha2::{Digest, Sha256};

const MOST_FILES: usize = 2_000;
const MOST_DEPTH: usize = 16;
const MOST_BYTES: u64 = 32 << 20;

/// What was in the folder when it was looked at.
#[derive(Clone, Debug)]
pub(super) struct Folder {
    pub(super) dir: PathBuf,
    files: BTreeMap<String, Vec<u8>>,
}

impl Folder {
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) for a link, a file that is none, and for more than a plugin may have.
    pub(super) fn read(dir: &Path) -> Result<Self> {
        let dir = dir.canonicalize().map_err(|e| Error::config(format!("'{}': {e}", dir.display())))?;
        let mut folder = Self { dir: dir.clone(), files: BTreeMap::new() };
        folder.walk(&dir, "", &mut MOST_BYTES.clone(), 0)?;
        Ok(folder)
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
            let mut bytes = Vec::new();
            let read = fs::File::open(entry.path()).and_then(|file| file.take(*left + 1).read_to_end(&mut bytes));
            let read = read.map_err(|e| wrong(&path, e.to_string()))? as u64;
            *left = left
                .checked_sub(read)
                .ok_or_else(|| wrong(&path, format!("the folder has more than {} MiB", MOST_BYTES >> 20)))?;
            self.files.insert(path, bytes);
            if self.files.len() > MOST_FILES {
                return Err(wrong(above, format!("the folder has more than {MOST_FILES} files")));
            }
        }
        Ok(())
    }

    /// A digest of all names and bytes.
    pub(super) fn digest(&self) -> String {
        let mut hash = Sha256::new();
        for (path, bytes) in &self.files {
            for part in [path.as_bytes(), bytes] {
                hash.update((part.len() as u64).to_le_bytes());
                hash.update(part);
            }
        }
        hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The text of a file, by its path in the folder.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) if it is not in the folder, or no text.
    pub(super) fn text(&self, path: &str) -> Result<&str> {
        let bytes = self.files.get(path);
        let bytes = bytes.ok_or_else(|| Error::config(format!("'{path}' is not a file of the plugin")))?;
        std::str::from_utf8(bytes).map_err(|_| Error::config(format!("'{path}' is not text")))
    }

    /// True if a file lies below this path.
    pub(super) fn has_below(&self, path: &str) -> bool {
        let path = format!("{path}/");
        !path.split('/').any(|part| part == ".." || part == ".")
            && self.files.keys().any(|file| file.starts_with(&path))
    }
}
