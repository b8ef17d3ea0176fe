//! [`IsolationBackend`]: isolation backend.

use std::{
    ffi::OsString,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use agent_core::{Error, Result};

use super::{bubblewrap, cgroup, landlock, room::Mounts, seccomp};
use crate::sandbox::Guarantees;

/// Isolation backend of a [`LocalSandbox`](super::LocalSandbox).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Isolation {
    /// The program `bwrap`, 0.8 or newer: empty namespaces.
    Bubblewrap,
    /// Kernel rules (landlock, from Linux 6.2 on, and seccomp) and process namespaces. Needs no
    /// package, but permission for users to create namespaces.
    Landlock,
    /// No isolation: programs have the rights of the application's user. Resource limits apply, and
    /// a command's processes end with it if they can be found.
    None,
}

/// Isolation backend that was found to work.
#[derive(Debug)]
pub(super) struct IsolationBackend {
    isolation: Isolation,
    room: Mounts,
    tools: Tools,
    /// True if `setpriv` can end programs with the application.
    dies_with_us: bool,
    /// True if control groups can be created.
    pub(super) groups: bool,
}

/// Paths of the helper programs that run outside the isolation backend; they must not be looked up
/// where programs can write.
#[derive(Debug)]
struct Tools {
    sh: PathBuf,
    /// Path of `env`, which is UTF-8.
    env: String,
    bash: Option<PathBuf>,
    bwrap: Option<PathBuf>,
    setpriv: Option<PathBuf>,
    unshare: Option<PathBuf>,
}

/// Path of `env`, if the application's `PATH` has none.
const ENV: &str = "/usr/bin/env";

impl Tools {
    fn find() -> Result<Self> {
        let no_shell = || Error::config("the sandbox needs a shell, 'sh', in the PATH of the application");
        Ok(Self {
            sh: found("sh").ok_or_else(no_shell)?,
            env: found("env").and_then(|env| env.into_os_string().into_string().ok()).unwrap_or_else(|| ENV.to_owned()),
            bash: found("bash"),
            bwrap: found("bwrap"),
            setpriv: found("setpriv"),
            unshare: found("unshare"),
        })
    }
}

impl IsolationBackend {
    /// Returns the requested backend, or the best one that works here.
    pub(super) fn choose(wanted: Option<Isolation>, room: Mounts) -> Result<Self> {
        let (tools, groups) = (Tools::find()?, cgroup::is_usable());
        let mut jail = Self { isolation: Isolation::None, room, tools, dies_with_us: false, groups };
        jail.dies_with_us = jail.pdeathsig().is_some_and(|line| tried(line).is_ok());
        let candidates = match wanted {
            Some(one) => vec![one],
            None => vec![Isolation::Bubblewrap, Isolation::Landlock],
        };
        let mut reasons = Vec::new();
        for isolation in candidates {
            jail.isolation = isolation;
            match jail.try_out() {
                Ok(()) => return Ok(jail),
                Err(reason) => reasons.push(format!("{isolation:?}: {reason}")),
            }
        }
        let what = "install the package bubblewrap, or choose Isolation::None if the programs are trusted";
        Err(Error::config(format!("no sandbox works here ({}): {what}", reasons.join("; "))))
    }

    /// Tests the backend; the error explains why it does not work here.
    fn try_out(&self) -> Result<(), String> {
        match self.isolation {
            Isolation::None => Ok(()),
            Isolation::Bubblewrap if self.tools.bwrap.is_none() => Err("bwrap is not installed".to_owned()),
            Isolation::Bubblewrap => tried(self.prefix(&self.room.work)),
            Isolation::Landlock => {
                let no_unshare = || "unshare is not installed".to_owned();
                tried(self.namespaces().ok_or_else(no_unshare)?)?;
                landlock::try_out(&self.room)
            }
        }
    }

    pub(super) fn guarantees(&self) -> Guarantees {
        let limited = Guarantees {
            process_count: self.groups || !rustix::process::geteuid().is_root(),
            memory: self.groups,
            ..Guarantees::none("nothing")
        };
        let kept = |by: &str| Guarantees {
            by: by.to_owned(),
            files: true,
            network: !self.room.network,
            processes: true,
            ..limited.clone()
        };
        match self.isolation {
            Isolation::Bubblewrap => Guarantees { no_survivors: true, ..kept("bubblewrap") },
            Isolation::Landlock => {
                Guarantees { no_survivors: self.dies_with_us, ..kept("landlock, seccomp and namespaces") }
            }
            Isolation::None => Guarantees { process_count: self.groups, ..limited },
        }
    }

    /// Returns true if a backend isolates programs.
    pub(super) fn is_closed(&self) -> bool {
        self.isolation != Isolation::None
    }

    pub(super) fn shell(&self) -> &Path {
        &self.tools.sh
    }

    pub(super) fn env(&self) -> &str {
        &self.tools.env
    }

    pub(super) fn bash(&self) -> Option<&Path> {
        self.tools.bash.as_deref()
    }

    /// Returns the command prefix of a program.
    pub(super) fn prefix(&self, dir: &Path) -> Vec<OsString> {
        match (self.isolation, &self.tools.bwrap) {
            (Isolation::Bubblewrap, Some(bwrap)) => bubblewrap::prefix(bwrap, &self.room, dir),
            (Isolation::Bubblewrap, None) => unreachable!("it was tried"),
            (Isolation::Landlock, _) => {
                let dying = self.pdeathsig().filter(|_| self.dies_with_us).unwrap_or_default();
                dying.into_iter().chain(self.namespaces().unwrap_or_default()).collect()
            }
            (Isolation::None, _) => self.pdeathsig().filter(|_| self.dies_with_us).unwrap_or_default(),
        }
    }

    /// Confines this thread, and hence the processes that it starts.
    pub(super) fn enter(&self) -> Result<(), String> {
        match self.isolation {
            Isolation::Bubblewrap => seccomp::enter_beside_namespaces().map_err(|e| e.to_string()),
            Isolation::Landlock => landlock::enter(&self.room),
            Isolation::None => Ok(()),
        }
    }

    fn pdeathsig(&self) -> Option<Vec<OsString>> {
        let setpriv = self.tools.setpriv.as_ref()?;
        Some([setpriv.into()].into_iter().chain(["--pdeathsig", "KILL", "--"].map(OsString::from)).collect())
    }

    /// Returns the prefix that creates namespaces: the owner of files stays their owner inside, but
    /// loses access to the host's processes.
    fn namespaces(&self) -> Option<Vec<OsString>> {
        let unshare = self.tools.unshare.as_ref()?;
        let mut line: Vec<OsString> = vec![unshare.into()];
        line.extend(["--user", "--pid", "--ipc", "--uts", "--fork", "--kill-child=KILL"].map(OsString::from));
        if !self.room.network {
            line.push("--net".into());
        }
        line.push("--".into());
        Some(line)
    }
}

/// Finds a program in the application's `PATH`. Relative folders are skipped: programs may be able
/// to write there.
fn found(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_program =
        |path: &PathBuf| path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0);
    std::env::split_paths(&path).filter(|dir| dir.is_absolute()).map(|dir| dir.join(name)).find(is_program)
}

/// Runs `true` with the prefix, and returns its error output on failure.
fn tried(mut line: Vec<OsString>) -> Result<(), String> {
    line.push("true".into());
    let mut command = Command::new(&line[0]);
    command.args(&line[1..]).env_clear().env("PATH", super::builder::PATH).stdin(Stdio::null());
    let output = command.output().map_err(|e| e.to_string())?;
    let said = String::from_utf8_lossy(&output.stderr);
    let last = said.lines().last().unwrap_or("it does not work here").to_owned();
    if output.status.success() { Ok(()) } else { Err(last) }
}
