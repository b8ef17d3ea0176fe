//! [`Group`]: the processes of one command.

use std::{
    process::Child,
    sync::{Mutex, PoisonError},
};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

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
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.leader = Some(pid(child));
        state.cgroup = cgroup;
        if state.is_killed {
            state.kill();
        }
    }

    /// Kills all of them, at once or as soon as they have started.
    pub(super) fn kill(&self) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.is_killed = true;
        state.kill();
    }

    /// Waits until the leader has ended, and kills what it left behind.
    pub(super) fn wait(&self, child: &mut Child) -> std::io::Result<std::process::ExitStatus> {
        // The number of a leader that has ended is its own until it is waited for.
        waitid(WaitId::Pid(pid(child)), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT)?;
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.kill();
        state.leader = None;
        state.cgroup = None;
        child.wait()
    }
}

impl State {
    fn kill(&self) {
        if let Some(leader) = self.leader {
            // It fails if none is left.
            let _ = kill_process_group(leader, Signal::KILL);
        }
        if let Some(cgroup) = &self.cgroup {
            cgroup.kill();
        }
    }
}

fn pid(child: &Child) -> Pid {
    Pid::from_child(child)
}
