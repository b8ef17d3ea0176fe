//! Snapshots of a directory: named copies.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use agent_core::{Error, Result, run::new_id};
use cap_std::{ambient_authority, fs::Dir};

use crate::sandbox::tree::{Folder, walk};

/// Folder of the snapshots of a sandbox.
#[derive(Clone, Debug)]
pub(super) struct Snapshots(PathBuf);

impl Snapshots {
    /// Opens a folder, and creates it if missing.
    pub(super) fn open(folder: &Path) -> Result<Self> {
        let opened = fs::create_dir_all(folder).and_then(|()| folder.canonicalize());
        opened.map(Self).map_err(|e| failed("be kept there", &e))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// Copies a directory to a new snapshot. Returns its name.
    pub(super) fn keep(&self, dir: &Path) -> Result<String> {
        let name = new_id();
        let draft = self.0.join(format!(".{name}.draft"));
        let kept = fs::create_dir(&draft).and_then(|()| copy(dir, &draft));
        let kept = kept.and_then(|()| fs::rename(&draft, self.0.join(&name)));
        if kept.is_err() {
            // The first error is reported; a draft is never mistaken for a snapshot.
            drop(fs::remove_dir_all(&draft));
        }
        kept.map(|()| name).map_err(|e| failed("be made", &e))
    }

    /// Fills an empty directory from a snapshot.
    pub(super) fn restore(&self, name: &str, dir: &Path) -> Result<()> {
        let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        let from = self.0.join(name);
        if !is_name || !from.is_dir() {
            return Err(Error::config(format!("there is no snapshot '{name}' in the folder of snapshots")));
        }
        let is_empty = fs::read_dir(dir).map(|mut entries| entries.next().is_none());
        match is_empty {
            Ok(true) => copy(&from, dir).map_err(|e| failed("be restored", &e)),
            Ok(false) => Err(Error::config("a snapshot is restored into an empty directory: this one is not empty")),
            Err(e) => Err(failed("be restored", &e)),
        }
    }
}

fn failed(what: &str, e: &io::Error) -> Error {
    Error::tool(format!("the snapshot cannot {what}: {e}"))
}

/// Copies the content of a directory: files with their modes, folders, and links as links.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let open = |path| Dir::open_ambient_dir(path, ambient_authority());
    let mut folder = Folder::new(open(to)?).keeping_links();
    walk(&open(from)?, &mut folder)?;
    folder.finish()
}
