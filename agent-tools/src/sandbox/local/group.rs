//! [`Group`]: the processes of one command.

use std::{
    io,
    process::{Child, ExitStatus},
    sync::{Mutex, MutexGuard, PoisonError},
};

use rustix::{
    io::retry_on_intr,
    process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid},
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

    /// Kills all of them, at once or as soon as they have started. It waits for nothing.
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
            // It fails if none is left.
            let _ = kill_process_group(leader, Signal::KILL);
        }
        if let Some(cgroup) = &self.cgroup {
            cgroup.kill();
        }
    }
}
