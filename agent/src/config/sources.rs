//! [`Sources`]: the files that one agent is read from, and how much of them.

use std::path::{Path, PathBuf};

/// Most bytes of a file.
const MOST_BYTES: u64 = 4 << 20;

/// Most files, counting each time that one is read.
const MOST_FILES: usize = 1_000;

/// Most bytes of all files and of all that references put in.
const MOST_IN_ALL: u64 = 32 << 20;

/// Files that were read, and their total size: a small file must not refer to unlimited data.
#[derive(Debug, Default)]
pub(super) struct Sources {
    /// The files in the order of reading, each once; with those that are not there.
    looked_for: Vec<PathBuf>,
    reads: usize,
    bytes: u64,
}

impl Sources {
    /// The text of a file.
    ///
    /// # Errors
    /// An error message to append to the file's name.
    pub(super) fn text(&mut self, path: &Path) -> Result<String, String> {
        if !self.looked_for.iter().any(|known| known == path) {
            self.looked_for.push(path.to_owned());
        }
        self.reads += 1;
        if self.reads > MOST_FILES {
            return Err(format!("is one too many: an agent is made of {MOST_FILES} files at most"));
        }
        let text = text_of(path)?;
        self.add(text.len())?;
        Ok(text)
    }

    /// Counts text that is put in.
    ///
    /// # Errors
    /// If all is more than an agent may be.
    pub(super) fn add(&mut self, bytes: usize) -> Result<(), String> {
        self.bytes = self.bytes.saturating_add(bytes as u64);
        match self.bytes > MOST_IN_ALL {
            true => {
                Err(format!("is too much: an agent's files and what they refer to have {MOST_IN_ALL} bytes at most"))
            }
            false => Ok(()),
        }
    }

    /// The files, in the order in which they were looked for.
    pub(super) fn into_files(self) -> Vec<PathBuf> {
        self.looked_for
    }
}

/// The text of a file, and of nothing else that has a path: a device or a pipe may have no end.
///
/// # Errors
/// An error message to append to the file's name.
pub(super) fn text_of(path: &Path) -> Result<String, String> {
    let cannot = |e: std::io::Error| format!("cannot be read: {e}");
    let about = std::fs::metadata(path).map_err(cannot)?;
    if !about.is_file() {
        return Err("cannot be read: it is no file".to_owned());
    }
    if about.len() > MOST_BYTES {
        return Err(format!("has {} bytes; the most are {MOST_BYTES}", about.len()));
    }
    std::fs::read_to_string(path).map_err(cannot)
}
