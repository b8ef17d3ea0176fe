//! [`Jail`]: what keeps programs in.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use agent_core::{Error, Result};

use super::{bubblewrap, cgroup, landlock};
use crate::sandbox::Guarantees;

/// What keeps the programs of a [`LocalSandbox`](super::LocalSandbox) in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Isolation {
    /// The program `bwrap`: namespaces in which nothing else is there.
    Bubblewrap,
    /// Rules of the kernel (landlock, from Linux 6.2 on, and seccomp), with namespaces for processes where users may make them. It needs no
    /// package.
    Landlock,
    /// Nothing: programs do what the application's user can do. Limits hold, and a command's processes end with it where they can be
    /// found.
    None,
}

/// What programs are given.
#[derive(Debug)]
pub(super) struct Room {
    pub(super) work: PathBuf,
    pub(super) temp: PathBuf,
    pub(super) readable: Vec<PathBuf>,
    pub(super) writable: Vec<PathBuf>,
    pub(super) network: bool,
}

/// What keeps programs in, as it was found to work.
#[derive(Debug)]
pub(super) struct Jail {
    isolation: Isolation,
    room: Room,
    /// Programs can be ended with the application, by `setpriv`.
    dies_with_us: bool,
    /// `unshare` makes namespaces.
    namespaces: bool,
    /// The kernel keeps signals in.
    signals: bool,
    /// Control groups can be made.
    pub(super) groups: bool,
}

/// The system's own programs, which are there on each machine or are read by most.
pub(super) const SYSTEM: [&str; 7] = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/opt"];

/// What programs need of `/etc`: nothing that is a secret.
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

impl Jail {
    /// The one that is wanted, or the best that works here.
    pub(super) fn choose(wanted: Option<Isolation>, room: Room) -> Result<Self> {
        let mut jail = Self {
            isolation: Isolation::None,
            room,
            dies_with_us: works(&["setpriv", "--pdeathsig", "KILL", "true"]),
            namespaces: false,
            signals: false,
            groups: cgroup::is_usable(),
        };
        let candidates = match wanted {
            Some(one) => vec![one],
            None => vec![Isolation::Bubblewrap, Isolation::Landlock],
        };
        let mut reasons = Vec::new();
        for isolation in candidates {
            jail.isolation = isolation;
            let tried = match isolation {
                Isolation::Bubblewrap => bubblewrap::try_out(&jail.room),
                Isolation::Landlock => landlock::try_out(&jail.room).and_then(|signals| {
                    jail.signals = signals;
                    jail.namespaces = works(&jail.unshare());
                    let open = "the kernel keeps signals in from Linux 6.12 on, and users may not make namespaces here";
                    if jail.signals || jail.namespaces { Ok(()) } else { Err(open.to_owned()) }
                }),
                Isolation::None => Ok(()),
            };
            match tried {
                Ok(()) => return Ok(jail),
                Err(reason) => reasons.push(reason),
            }
        }
        let what = "install the package bubblewrap, or choose Isolation::None if the programs are trusted";
        Err(Error::config(format!("no sandbox works here ({}): {what}", reasons.join("; "))))
    }

    pub(super) fn guarantees(&self) -> Guarantees {
        let no_network = !self.room.network;
        let limited = Guarantees {
            process_count: self.groups || !rustix::process::geteuid().is_root(),
            memory: self.groups,
            ..Guarantees::none("nothing")
        };
        match self.isolation {
            Isolation::Bubblewrap => Guarantees {
                by: "bubblewrap".to_owned(),
                files: true,
                network: no_network,
                processes: true,
                no_survivors: true,
                ..limited
            },
            Isolation::Landlock => Guarantees {
                by: if self.namespaces { "landlock, seccomp and namespaces" } else { "landlock and seccomp" }
                    .to_owned(),
                files: true,
                network: no_network,
                processes: true,
                no_survivors: self.namespaces && self.dies_with_us,
                ..limited
            },
            Isolation::None => limited,
        }
    }

    /// What stands before a program in the command that is really run.
    pub(super) fn prefix(&self, dir: &Path) -> Vec<OsString> {
        let mut prefix: Vec<OsString> = Vec::new();
        if self.isolation == Isolation::Bubblewrap {
            return bubblewrap::prefix(&self.room, dir);
        }
        if self.dies_with_us {
            prefix.extend(["setpriv", "--pdeathsig", "KILL", "--"].map(OsString::from));
        }
        if self.namespaces {
            let unshare = self.unshare();
            prefix.extend(unshare.iter().take(unshare.len() - 1).map(OsString::from));
        }
        prefix
    }

    /// Keeps this thread in, and with it what it starts.
    pub(super) fn enter(&self) -> Result<(), String> {
        if self.isolation == Isolation::Landlock { landlock::enter(&self.room) } else { Ok(()) }
    }

    /// `true` in namespaces of its own. The owner of files stays their owner; what it may do to the host's processes goes.
    fn unshare(&self) -> Vec<&'static str> {
        let mut line = vec!["unshare", "--user", "--pid", "--ipc", "--uts", "--fork", "--kill-child=KILL"];
        if !self.room.network {
            line.push("--net");
        }
        line.extend(["--", "true"]);
        line
    }
}

/// True if the command ends well.
pub(super) fn works(line: &[impl AsRef<std::ffi::OsStr>]) -> bool {
    let quiet = Command::new(&line[0])
        .args(&line[1..])
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    quiet.is_ok_and(|status| status.success())
}
