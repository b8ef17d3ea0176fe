//! What `bwrap` is told.

use std::{ffi::OsString, path::Path};

use super::jail::{ETC, Room, SYSTEM, works};

/// The user that programs are inside.
const USER: &str = "1000";

/// The line before a program that starts in `dir`.
pub(super) fn prefix(room: &Room, dir: &Path) -> Vec<OsString> {
    let mut line = Line::default();
    line.words(&["bwrap", "--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]);
    line.words(&["--uid", USER, "--gid", USER, "--hostname", "sandbox"]);
    line.words(&["--disable-userns", "--cap-drop", "ALL", "--die-with-parent", "--new-session"]);
    if !room.network {
        line.words(&["--unshare-net"]);
    }
    for path in SYSTEM.iter().chain(&ETC) {
        line.bind("--ro-bind-try", Path::new(path), Path::new(path));
    }
    line.words(&["--proc", "/proc", "--dev", "/dev"]);
    line.bind("--bind", &room.temp, Path::new("/tmp"));
    line.bind("--bind", &room.temp, &room.temp);
    for path in &room.readable {
        line.bind("--ro-bind-try", path, path);
    }
    for path in room.writable.iter().chain([&room.work]) {
        line.bind("--bind", path, path);
    }
    line.words(&["--chdir"]);
    line.0.push(dir.into());
    line.words(&["--"]);
    line.0
}

/// Says why it does not work here.
pub(super) fn try_out(room: &Room) -> Result<(), String> {
    if !works(&["bwrap", "--version"]) {
        return Err("bwrap is not installed".to_owned());
    }
    let mut line = prefix(room, &room.work);
    line.push("true".into());
    if works(&line) { Ok(()) } else { Err("bwrap may not make namespaces here".to_owned()) }
}

#[derive(Default)]
struct Line(Vec<OsString>);

impl Line {
    fn words(&mut self, words: &[&str]) {
        self.0.extend(words.iter().map(OsString::from));
    }

    fn bind(&mut self, how: &str, from: &Path, to: &Path) {
        self.0.extend([how.into(), from.into(), to.into()]);
    }
}
