//! [`Cgroup`]: limits for all processes of a command together, if the application may create
//! control groups.

use std::{
    fs, io,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use agent_core::run::new_id;
use rustix::process::{Pid, Signal, kill_process};

use crate::sandbox::Limits;

const ROOT: &str = "/sys/fs/cgroup";

const PREFIX: &str = "agent-sandbox-";

/// Age after which an empty group counts as left behind by a killed application.
const LEFT: Duration = Duration::from_secs(3600);

/// Number of rounds of killing until a group is empty, and pause between them.
const ROUNDS: u32 = 100;
const PAUSE: Duration = Duration::from_millis(5);

/// Control groups of one command, one per hierarchy; removed when dropped.
#[derive(Debug)]
pub(super) struct Cgroup(Vec<PathBuf>);

/// Returns true if groups that limit memory and processes can be created here. Removes remains of
/// killed applications.
pub(super) fn is_usable() -> bool {
    let unified = unified_parents();
    let all =
        if unified.is_empty() { vec![format!("{ROOT}/memory").into(), format!("{ROOT}/pids").into()] } else { unified };
    for parent in all {
        for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
            let age =
                entry.metadata().and_then(|found| found.modified()).map(|time| time.elapsed().unwrap_or_default());
            if entry.file_name().to_string_lossy().starts_with(PREFIX) && age.is_ok_and(|age| age > LEFT) {
                // Fails if the group is not empty.
                drop(fs::remove_dir(entry.path()));
            }
        }
    }
    Cgroup::new(&Limits::default()).is_ok()
}

/// Returns the groups of the unified hierarchy in which new groups may be possible: its root, and
/// the groups around this process, one of which systemd may have delegated to its user. Empty for
/// the older hierarchies.
fn unified_parents() -> Vec<PathBuf> {
    if fs::read_to_string(Path::new(ROOT).join("cgroup.controllers")).is_err() {
        return Vec::new();
    }
    let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    parents(&own)
}

/// Parses `/proc/self/cgroup`. The root comes first, then the parent of the own group, whose other
/// members are not this process, then the groups above.
fn parents(own: &str) -> Vec<PathBuf> {
    let path = own.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or_default();
    let above = Path::new(path).ancestors().skip(1).filter(|path| !path.as_os_str().is_empty());
    let root = Path::new(ROOT);
    [root.to_owned()].into_iter().chain(above.map(|path| root.join(path))).collect()
}

impl Cgroup {
    /// Creates groups with these limits.
    pub(super) fn new(limits: &Limits) -> io::Result<Self> {
        let (memory, processes) = (limits.memory.to_string(), limits.processes.to_string());
        let unified = unified_parents();
        if unified.is_empty() {
            let (of_memory, of_processes) = (format!("{ROOT}/memory"), format!("{ROOT}/pids"));
            let settings = [
                (Path::new(&of_memory), "memory.limit_in_bytes", &*memory),
                (Path::new(&of_processes), "pids.max", &*processes),
            ];
            return Self::create(&settings);
        }
        let mut failed = io::Error::from(io::ErrorKind::NotFound);
        for parent in &unified {
            match Self::create(&[(parent, "memory.max", &*memory), (parent, "pids.max", &*processes)]) {
                Ok(groups) => return Ok(groups),
                Err(error) => failed = error,
            }
        }
        Err(failed)
    }

    /// Creates one group per parent, and writes the limits.
    fn create(settings: &[(&Path, &str, &str)]) -> io::Result<Self> {
        let name = format!("{PREFIX}{}", new_id());
        let mut groups = Self(Vec::new());
        for (parent, file, limit) in settings {
            let group = parent.join(&name);
            if !groups.0.contains(&group) {
                fs::create_dir(&group)?;
                groups.0.push(group.clone());
            }
            fs::write(group.join(file), limit)?;
            // With swap, memory would only move there.
            let _ = fs::write(group.join("memory.swap.max"), "0");
        }
        Ok(groups)
    }

    /// Adds a process; its descendants are members too.
    pub(super) fn add(&self, pid: u32) -> io::Result<()> {
        self.0.iter().try_for_each(|group| fs::write(group.join("cgroup.procs"), pid.to_string()))
    }

    /// Returns the current members.
    pub(super) fn processes(&self) -> Vec<Pid> {
        let listed = self.0.iter().filter_map(|group| fs::read_to_string(group.join("cgroup.procs")).ok());
        listed
            .flat_map(|list| list.lines().filter_map(|pid| Pid::from_raw(pid.parse().ok()?)).collect::<Vec<_>>())
            .collect()
    }

    /// Kills the current members. Returns true if the group was empty.
    pub(super) fn kill(&self) -> bool {
        let mut was_empty = true;
        for group in &self.0 {
            let listed = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
            was_empty &= listed.trim().is_empty();
            // Newer kernels kill a whole group; on older ones, each process is killed.
            if !was_empty && fs::write(group.join("cgroup.kill"), "1").is_err() {
                for pid in listed.lines().filter_map(|pid| Pid::from_raw(pid.parse().ok()?)) {
                    // A process that has exited is no error.
                    let _ = kill_process(pid, Signal::KILL);
                }
            }
        }
        was_empty
    }

    /// Kills until the group is empty.
    pub(super) fn end(&self) {
        for _ in 0..ROUNDS {
            if self.kill() {
                return;
            }
            thread::sleep(PAUSE);
        }
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        for _ in 0..ROUNDS {
            self.0.retain(|group| fs::remove_dir(group).is_err_and(|e| e.kind() != io::ErrorKind::NotFound));
            if self.0.is_empty() {
                return;
            }
            // Killed processes leave the group a moment later.
            thread::sleep(PAUSE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_tried_at_the_root_and_around_the_own_group() {
        let own = "1:name=systemd:/x\n0::/user.slice/user-1000.slice/app.slice/run-1.scope\n";
        let shown: Vec<_> = parents(own).iter().map(|path| path.display().to_string()).collect();
        let below = |path: &str| format!("{ROOT}{path}");
        assert_eq!(
            shown,
            [
                below(""),
                below("/user.slice/user-1000.slice/app.slice"),
                below("/user.slice/user-1000.slice"),
                below("/user.slice")
            ]
        );
        assert_eq!(parents("0::/\n"), [PathBuf::from(ROOT)]);
    }
}
