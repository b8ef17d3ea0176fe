//! [`LocalSandboxBuilder`].

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use agent_core::{Error, Result};

use super::{
    LocalSandbox,
    gate::check_env,
    jail::{Isolation, IsolationBackend},
    room::Mounts,
    snapshot::Snapshots,
    temp::Temp,
};
use crate::{
    files::Files,
    sandbox::{LARGEST_FILE, Limits},
};

/// Default search path for programs.
pub(super) const PATH: &str = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin";

/// Builds a [`LocalSandbox`].
#[derive(Clone, Debug)]
pub struct LocalSandboxBuilder {
    dir: PathBuf,
    readable: Vec<PathBuf>,
    writable: Vec<PathBuf>,
    env: BTreeMap<String, String>,
    limits: Limits,
    network: bool,
    isolation: Option<Isolation>,
    snapshots: Option<PathBuf>,
    restored: Option<String>,
}

impl LocalSandboxBuilder {
    pub(super) fn new(dir: PathBuf) -> Self {
        Self {
            dir,
            readable: Vec::new(),
            writable: Vec::new(),
            env: BTreeMap::new(),
            limits: Limits::default(),
            network: false,
            isolation: None,
            snapshots: None,
            restored: None,
        }
    }

    /// Lets programs read and execute files below a path, such as a toolchain in a home directory.
    /// The path must exist, and must not be writable for programs.
    #[must_use]
    pub fn readable(mut self, path: impl Into<PathBuf>) -> Self {
        self.readable.push(path.into());
        self
    }

    /// Lets programs change files below a path in addition to the directory, such as a package
    /// cache. The path must exist.
    #[must_use]
    pub fn writable(mut self, path: impl Into<PathBuf>) -> Self {
        self.writable.push(path.into());
        self
    }

    /// Sets an environment variable of every program. Programs inherit no variable of the
    /// application; the sandbox sets `PATH`, `HOME`, `TMPDIR`, `LANG` and `TERM`. Rejected are
    /// names other than letters, digits and underscores, and those that make the dynamic linker or
    /// a shell execute something: `LD_*`, `BASH_*`, `SHELLOPTS`, `BASHOPTS`, `PS4` and `ENV`.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.insert(name.into(), value.into());
        self
    }

    /// Passes variables of the application to programs, by name; unset ones are skipped.
    #[must_use]
    pub fn inherit_env(mut self, names: &[&str]) -> Self {
        let set = names.iter().filter_map(|name| Some(((*name).to_owned(), std::env::var(name).ok()?)));
        self.env.extend(set);
        self
    }

    /// Sets the resource limits of each command. Default: [`Limits::default`].
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Lets programs use the host's network: everything that the host can reach, including itself
    /// and hosts behind its firewall. Default: off.
    #[must_use]
    pub fn allow_network(mut self) -> Self {
        self.network = true;
        self
    }

    /// Sets the isolation backend. Default: the first of [`Isolation::Bubblewrap`] and
    /// [`Isolation::Landlock`] that works here.
    #[must_use]
    pub fn isolation(mut self, isolation: Isolation) -> Self {
        self.isolation = Some(isolation);
        self
    }

    /// Stores [snapshots](crate::sandbox::Sandbox::snapshot) in a folder, which is created if
    /// missing. Programs must not be able to write there. Default: snapshots are disabled.
    #[must_use]
    pub fn snapshots(mut self, folder: impl Into<PathBuf>) -> Self {
        self.snapshots = Some(folder.into());
        self
    }

    /// Starts with the files of a snapshot in [the folder](Self::snapshots); the directory must be
    /// empty.
    #[must_use]
    pub fn restored(mut self, snapshot: impl Into<String>) -> Self {
        self.restored = Some(snapshot.into());
        self
    }

    /// Builds the sandbox. Starts one or two programs, to determine the guarantees on this machine.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) if the directory or another path is
    /// missing, if a given path is writable for programs, for a rejected [variable](Self::env), or
    /// if the isolation backend does not work here: the message names the package to install.
    pub fn build(self) -> Result<LocalSandbox> {
        check_env(&self.env)?;
        let work = Files::open_root(&self.dir, "sandbox")?.up_to(LARGEST_FILE);
        let no_temp = |e| Error::config("the sandbox cannot make a temporary directory").with_source(e);
        let temp_dir = Temp::new().map_err(no_temp)?;
        let temp = Files::open_root(temp_dir.path(), "sandbox")?.up_to(LARGEST_FILE);
        let temp_path = utf8(temp.root_path().to_owned())?;
        let snapshots = self.snapshots.as_deref().map(Snapshots::open).transpose()?;
        let room = Mounts {
            work: work.root_path().to_owned(),
            temp: temp.root_path().to_owned(),
            readable: self.readable,
            writable: self.writable,
            network: self.network,
        }
        .checked()?;
        utf8(room.work.clone())?;
        if let Some(folder) = &snapshots
            && room.is_writable(folder.path())
        {
            return Err(Error::config(
                "programs of the sandbox could change its snapshots: keep them in another folder",
            ));
        }
        if let Some(name) = &self.restored {
            let folder = snapshots.as_ref();
            let folder =
                folder.ok_or_else(|| Error::config("say in which folder the snapshot is: .snapshots(folder)"))?;
            folder.restore(name, &room.work)?;
        }
        let jail = IsolationBackend::choose(self.isolation, room)?;
        let guarantees = jail.guarantees();
        let own = [("PATH", PATH), ("HOME", &temp_path), ("TMPDIR", &temp_path), ("LANG", "C.UTF-8"), ("TERM", "dumb")];
        let own = own.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let env: BTreeMap<_, _> = own.into_iter().chain(self.env).collect();
        Ok(LocalSandbox {
            work,
            temp,
            temp_path,
            env: Arc::new(env),
            limits: self.limits,
            jail: Arc::new(jail),
            guarantees,
            snapshots,
            programs: Arc::default(),
            _temp: Arc::new(temp_dir),
        })
    }
}

fn utf8(path: PathBuf) -> Result<String> {
    path.into_os_string()
        .into_string()
        .map_err(|path| Error::config(format!("the path {path:?} is not UTF-8: a model could not name its files")))
}
