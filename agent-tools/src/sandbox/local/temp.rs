//! [`Temp`]: temporary directory that is eventually removed, even if the application was killed.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
use tempfile::TempDir;

const PREFIX: &str = "agent-sandbox-";

/// Lock file, held while the application lives; programs do not see it.
const LOCK: &str = "lock";

/// Directory for programs, removed when dropped.
#[derive(Debug)]
pub(super) struct Temp {
    path: PathBuf,
    _lock: File,
    _dir: TempDir,
}

impl Temp {
    /// Creates a directory. Removes remains of killed applications.
    pub(super) fn new() -> io::Result<Self> {
        sweep(&std::env::temp_dir());
        let dir = tempfile::Builder::new().prefix(PREFIX).tempdir()?;
        let draft = dir.path().join("draft");
        let lock = File::create(&draft)?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
        // The directory is locked from its first moment.
        fs::rename(draft, dir.path().join(LOCK))?;
        let path = dir.path().join("tmp");
        fs::create_dir(&path)?;
        Ok(Self { path, _lock: lock, _dir: dir })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

/// Removes directories without a lock holder. Failures are ignored: the directory may be another
/// user's.
fn sweep(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let is_one = entry.file_name().to_string_lossy().starts_with(PREFIX);
        if !is_one || !entry.file_type().is_ok_and(|t| t.is_dir()) {
            continue;
        }
        // A directory without a lock file is being created.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let Ok(lock) = open(entry.path().join(LOCK), flags, Mode::empty()) else { continue };
        if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok() {
            drop(fs::remove_dir_all(entry.path()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_application_left_goes_and_what_is_held_stays() {
        let held = Temp::new().expect("makes");
        let left = std::env::temp_dir().join(format!("{PREFIX}left-{}", std::process::id()));
        fs::create_dir_all(left.join("tmp/deep")).expect("creates");
        File::create(left.join(LOCK)).expect("creates");
        let young = std::env::temp_dir().join(format!("{PREFIX}young-{}", std::process::id()));
        fs::create_dir(&young).expect("creates");
        let next = Temp::new().expect("makes");
        assert!(held.path().exists() && next.path().exists() && !left.exists() && young.exists());
        fs::remove_dir(young).expect("removes");
        let path = next.path().to_owned();
        drop(next);
        assert!(!path.exists());
    }
}
