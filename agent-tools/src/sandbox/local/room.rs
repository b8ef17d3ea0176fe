//! [`Mounts`]: mounts, the paths that a sandboxed process may read or write.

use std::path::{Path, PathBuf};

use agent_core::{Error, Result};

/// Paths that a sandboxed process may read or write, with links resolved.
#[derive(Debug)]
pub(super) struct Mounts {
    pub(super) work: PathBuf,
    pub(super) temp: PathBuf,
    pub(super) readable: Vec<PathBuf>,
    pub(super) writable: Vec<PathBuf>,
    pub(super) network: bool,
}

/// Directories of the system's programs, without `/opt`: images keep applications there.
pub(super) const SYSTEM: [&str; 6] = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64"];

/// Files of `/etc` that programs need, none of them secret.
pub(super) const ETC: [&str; 25] = [
    "/etc/alternatives",
    "/etc/ca-certificates",
    "/etc/ca-certificates.conf",
    "/etc/fonts",
    "/etc/group",
    "/etc/host.conf",
    "/etc/hosts",
    "/etc/inputrc",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
    "/etc/login.defs",
    "/etc/magic",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/os-release",
    "/etc/passwd",
    "/etc/perl",
    "/etc/pki/tls/certs",
    "/etc/protocols",
    "/etc/resolv.conf",
    "/etc/services",
    "/etc/ssl/certs",
    "/etc/timezone",
];

impl Mounts {
    /// Resolves the links of all paths. Rejects a path that lies where programs can write: a
    /// program could replace it by a link to anything.
    pub(super) fn checked(mut self) -> Result<Self> {
        for path in self.readable.iter_mut().chain(&mut self.writable) {
            let missing = |e| Error::config(format!("the sandbox cannot give '{}': {e}", path.display()));
            *path = path.canonicalize().map_err(missing)?;
        }
        let writable: Vec<&Path> = self.writable.iter().chain([&self.work, &self.temp]).map(PathBuf::as_path).collect();
        for path in self.readable.iter().map(PathBuf::as_path).chain(writable.iter().copied()) {
            if let Some(above) = writable.iter().find(|above| **above != path && path.starts_with(above)) {
                let (path, above) = (path.display(), above.display());
                return Err(Error::config(format!(
                    "the sandbox is given '{path}', which lies in '{above}', where programs can write: give one of them"
                )));
            }
        }
        Ok(self)
    }

    /// Returns true if programs can write at a resolved path.
    pub(super) fn is_writable(&self, path: &Path) -> bool {
        self.writable.iter().chain([&self.work, &self.temp]).any(|above| path.starts_with(above))
    }
}
