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
    for hierarchy in ["", "memory", "pids"] {
        for entry in fs::read_dir(Path::new(ROOT).join(hierarchy)).into_iter().flatten().flatten() {
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

impl Cgroup {
    /// Creates groups with these limits.
    pub(super) fn new(limits: &Limits) -> io::Result<Self> {
        let root = Path::new(ROOT);
        let (memory, processes) = (limits.memory.to_string(), limits.processes.to_string());
        let name = format!("{PREFIX}{}", new_id());
        let unified = fs::read_to_string(root.join("cgroup.controllers")).is_ok();
        let settings: &[(&str, &str, &str)] = if unified {
            &[("", "memory.max", &memory), ("", "pids.max", &processes)]
        } else {
            &[("memory", "memory.limit_in_bytes", &memory), ("pids", "pids.max", &processes)]
        };
        let mut groups = Self(Vec::new());
        for (hierarchy, file, limit) in settings {
            let group = root.join(hierarchy).join(&name);
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
