//! Command line of `bwrap`.

use std::{ffi::OsString, path::Path};

use super::room::{ETC, Mounts, SYSTEM};

/// User id of programs inside.
const USER: &str = "1000";

/// Size in bytes of `/tmp` and of `/dev/shm`, which are in memory. Large files belong in the
/// temporary directory that `TMPDIR` names.
const TMP: &str = "268435456";
const SHM: &str = "67108864";

/// Returns the command prefix of a program that starts in `dir`.
pub(super) fn prefix(bwrap: &Path, room: &Mounts, dir: &Path) -> Vec<OsString> {
    let mut line = Line(vec![bwrap.into()]);
    line.words(&["--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]);
    line.words(&["--uid", USER, "--gid", USER, "--hostname", "sandbox"]);
    line.words(&["--disable-userns", "--cap-drop", "ALL", "--die-with-parent", "--new-session"]);
    if !room.network {
        line.words(&["--unshare-net"]);
    }
    for path in SYSTEM.iter().chain(&ETC) {
        line.bind("--ro-bind-try", Path::new(path));
    }
    line.words(&[
        "--proc", "/proc", "--dev", "/dev", "--size", SHM, "--tmpfs", "/dev/shm", "--size", TMP, "--tmpfs", "/tmp",
    ]);
    room.readable.iter().for_each(|path| line.bind("--ro-bind", path));
    room.writable.iter().chain([&room.temp, &room.work]).for_each(|path| line.bind("--bind", path));
    line.words(&["--remount-ro", "/dev", "--remount-ro", "/", "--chdir"]);
    line.0.push(dir.into());
    line.words(&["--"]);
    line.0
}

struct Line(Vec<OsString>);

impl Line {
    fn words(&mut self, words: &[&str]) {
        self.0.extend(words.iter().map(OsString::from));
    }

    fn bind(&mut self, how: &str, path: &Path) {
        self.0.extend([how.into(), path.into(), path.into()]);
    }
}
