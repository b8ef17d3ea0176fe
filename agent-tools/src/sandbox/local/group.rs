//! [`Group`]: the processes of one command.

use std::{
    fs, io,
    process::{Child, ExitStatus},
    sync::{Mutex, MutexGuard, PoisonError},
    thread,
};

use rustix::{
    io::retry_on_intr,
    process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, waitid},
};

use super::cgroup::Cgroup;

/// The processes of one command, until they have ended.
#[derive(Debug, Default)]
pub(super) struct Group(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// The leader, until it is waited for: then its number may be another's.
    leader: Option<Pid>,
    cgroup: Option<Cgroup>,
    is_killed: bool,
}

impl Group {
    /// The leader has started.
    pub(super) fn started(&self, child: &Child, cgroup: Option<Cgroup>) {
        let mut state = self.lock();
        state.leader = Some(Pid::from_child(child));
        state.cgroup = cgroup;
        if state.is_killed {
            state.kill();
        }
    }

    /// Kills all of them, at once or as soon as they have started. It does not wait until they have ended.
    pub(super) fn kill(&self) {
        let mut state = self.lock();
        state.is_killed = true;
        state.kill();
    }

    pub(super) fn is_killed(&self) -> bool {
        self.lock().is_killed
    }

    /// Waits until the leader has ended, and ends what it left behind.
    pub(super) fn wait(&self, child: &mut Child) -> io::Result<ExitStatus> {
        // The number of a leader that has ended is its own until it is waited for.
        let leader = Pid::from_child(child);
        let ended = retry_on_intr(|| waitid(WaitId::Pid(leader), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT));
        let cgroup = {
            let mut state = self.lock();
            if ended.is_ok() {
                state.kill();
            }
            state.leader = None;
            state.cgroup.take()
        };
        if let Some(cgroup) = cgroup {
            cgroup.end();
        }
        child.wait()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn kill(&self) {
        if let Some(leader) = self.leader {
            // The first process inside a sandbox is in no group of its starter's, and ends with it only from some moment of its own
            // start on. So it is ended first, while its starter cannot start another. Each fails if there is none.
            let _ = kill_process(leader, Signal::STOP);
            for child in children(leader) {
                let _ = kill_process(child, Signal::KILL);
            }
            let _ = kill_process_group(leader, Signal::KILL);
        }
        if let Some(cgroup) = &self.cgroup {
            cgroup.kill();
        }
    }
}

/// How often it is looked whether a process has stopped: it does so within microseconds, unless the system holds it up.
const LOOKS: usize = 1_000;

/// The processes that a process has started itself, once it can start no other.
fn children(parent: Pid) -> Vec<Pid> {
    let place = format!("/proc/{}", parent.as_raw_nonzero());
    let runs = || {
        let stat = fs::read_to_string(format!("{place}/stat")).unwrap_or_default();
        // The name before the state may hold anything, a bracket too.
        stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['T', 'Z', 'X']))
    };
    for _ in 0..LOOKS {
        if !runs() {
            break;
        }
        thread::yield_now();
    }
    let tasks = fs::read_dir(format!("{place}/task")).into_iter().flatten().flatten();
    let listed = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    let numbers =
        listed.flat_map(|list| list.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>());
    numbers.filter_map(Pid::from_raw).collect()
}
