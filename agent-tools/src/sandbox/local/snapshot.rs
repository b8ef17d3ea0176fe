//! Snapshots of a directory: copies of it, each below its name.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use agent_core::{Error, Result, run::new_id};
use cap_std::{
    ambient_authority,
    fs::{Dir, DirEntry},
};

/// Most bytes and most entries of one snapshot, and how deep its folders lie in each other.
const MOST_BYTES: u64 = 4 << 30;
const MOST_ENTRIES: u64 = 1_000_000;
const DEEPEST: usize = 200;

/// Where the snapshots of a sandbox lie.
#[derive(Clone, Debug)]
pub(super) struct Snapshots(PathBuf);

impl Snapshots {
    /// Those in a folder, which is made.
    pub(super) fn open(folder: &Path) -> Result<Self> {
        let opened = fs::create_dir_all(folder).and_then(|()| folder.canonicalize());
        opened.map(Self).map_err(|e| failed("be kept there", &e))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// Keeps a copy of a directory. Gives its name.
    pub(super) fn keep(&self, dir: &Path) -> Result<String> {
        let name = new_id();
        let draft = self.0.join(format!(".{name}.draft"));
        let kept = fs::create_dir(&draft).and_then(|()| copy(dir, &draft));
        let kept = kept.and_then(|()| fs::rename(&draft, self.0.join(&name)));
        if kept.is_err() {
            // The error that is told is the first one; nobody takes a draft for a snapshot.
            drop(fs::remove_dir_all(&draft));
        }
        kept.map(|()| name).map_err(|e| failed("be made", &e))
    }

    /// Fills an empty directory with a copy.
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

/// What a copy may still have.
struct Left {
    bytes: u64,
    entries: u64,
}

/// Copies what lies in a directory: files with their modes, folders, and links as links. No link is followed, since programs may be changing them
/// meanwhile: each entry is opened below a handle of its folder. A pipe, a socket or a device is left out.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let open = |path| Dir::open_ambient_dir(path, ambient_authority());
    let mut left = Left { bytes: MOST_BYTES, entries: MOST_ENTRIES };
    copy_folder(&open(from)?, &open(to)?, DEEPEST, &mut left)
}

fn copy_folder(from: &Dir, to: &Dir, depth: usize, left: &mut Left) -> io::Result<()> {
    if depth == 0 {
        return Err(io::Error::other(format!("its folders lie more than {DEEPEST} deep")));
    }
    for entry in from.entries()? {
        left.entries = left.entries.checked_sub(1).ok_or_else(|| io::Error::other("it has too many files"))?;
        match copy_entry(&entry?, from, to, depth, left) {
            // One that is gone again is passed over.
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            done => done?,
        }
    }
    Ok(())
}

fn copy_entry(entry: &DirEntry, from: &Dir, to: &Dir, depth: usize, left: &mut Left) -> io::Result<()> {
    let (name, kind) = (entry.file_name(), entry.file_type()?);
    if kind.is_dir() {
        let folder = cap_fs_ext::DirExt::open_dir_nofollow(from, &name)?;
        to.create_dir(&name)?;
        copy_folder(&folder, &to.open_dir(&name)?, depth - 1, left)?;
        return to.set_permissions(&name, folder.dir_metadata()?.permissions());
    }
    if kind.is_symlink() {
        let target = from.read_link_contents(&name)?;
        return cap_fs_ext::DirExt::symlink(to, target, &name);
    }
    if !kind.is_file() {
        return Ok(());
    }
    let mut options = cap_std::fs::OpenOptions::new();
    cap_fs_ext::OpenOptionsSyncExt::nonblock(options.read(true), true);
    cap_fs_ext::OpenOptionsFollowExt::follow(&mut options, cap_fs_ext::FollowSymlinks::No);
    let source = from.open_with(&name, &options)?;
    let metadata = source.metadata()?;
    if !metadata.is_file() {
        return Ok(());
    }
    let mut target = to.create(&name)?;
    let most = left.bytes;
    let copied = io::copy(&mut io::Read::take(source, most.saturating_add(1)), &mut target)?;
    left.bytes =
        most.checked_sub(copied).ok_or_else(|| io::Error::other(format!("it has more than {MOST_BYTES} bytes")))?;
    target.set_permissions(metadata.permissions())
}
