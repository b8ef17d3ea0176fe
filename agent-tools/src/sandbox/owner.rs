//! Owner of a remote sandbox: the application that created it.

use std::{env::consts::OS, fs, process};

/// Returns an identifier of this application: the boot of its machine, its PID namespace, its pid
/// and the process's start time. It is unique even if the pid is reused. `None` if it cannot be
/// determined.
pub(super) fn this() -> Option<String> {
    name(process::id())
}

/// Returns true if the application has certainly ended: it had this boot id and PID namespace, and
/// no such process exists.
pub(super) fn is_gone(owner: &str) -> bool {
    let process = owner.rsplit(' ').nth(1).and_then(|id| id.parse().ok());
    let (Some(process), Some(this)) = (process, this()) else { return false };
    let place = |name: &str| name.rsplitn(3, ' ').nth(2).map(str::to_owned);
    place(owner) == place(&this) && name(process).as_deref() != Some(owner)
}

fn name(process: u32) -> Option<String> {
    if OS != "linux" {
        return None;
    }
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let seen = fs::read_link("/proc/self/ns/pid").ok()?;
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The program name is in brackets and may contain anything.
    let started = stat.rsplit_once(") ")?.1.split(' ').nth(19)?;
    Some(format!("{} {} {process} {started}", boot.trim(), seen.display()))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn only_an_application_that_is_certainly_gone_is_gone() {
        let this = this().expect("is learned");
        assert!(!is_gone(&this));
        let mut child = process::Command::new("sleep").arg("100").spawn().expect("starts");
        let other = name(child.id()).expect("runs");
        assert!(!is_gone(&other));
        child.kill().expect("runs");
        child.wait().expect("is a child");
        assert!(is_gone(&other));
        let (place, _) = this.rsplit_once(' ').expect("has parts");
        assert!(is_gone(&format!("{place} 1")), "the same number, started at another time");
        for elsewhere in ["", "x", &other.replacen(|c: char| c.is_ascii_hexdigit(), "z", 1)] {
            assert!(!is_gone(elsewhere), "{elsewhere}");
        }
    }
}
