//! [`Group`]: processes of one command.

use std::{
    collections::BTreeSet,
    fs, io,
    process::{Child, ExitStatus},
    sync::{Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use rustix::{
    io::retry_on_intr,
    process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, waitid},
};

use super::cgroup::Cgroup;

/// Processes of one command, until they have ended.
#[derive(Debug, Default)]
pub(super) struct Group(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// Leader, until it is reaped: after that, its pid may be reused.
    leader: Option<Pid>,
    cgroup: Option<Cgroup>,
    is_killed: bool,
    is_halted: bool,
    /// Pids of the paused processes: a process that had stopped itself is not resumed with them.
    halted: BTreeSet<i32>,
}

/// Maximum of rounds until all processes of a command have stopped, and pause between them.
const ROUNDS: usize = 2_000;
const PAUSE: Duration = Duration::from_millis(1);

impl Group {
    /// Records the started leader.
    pub(super) fn started(&self, child: &Child, cgroup: Option<Cgroup>) {
        let mut state = self.lock();
        state.leader = Some(Pid::from_child(child));
        state.cgroup = cgroup;
        if state.is_killed {
            state.kill();
        } else if state.is_halted {
            // The caller of `halt` waits for the result; the starter cannot handle the error.
            let _ = state.halt();
        }
    }

    /// Pauses all processes, or as soon as they have started.
    pub(super) fn halt(&self) -> io::Result<()> {
        let mut state = self.lock();
        state.is_halted = true;
        state.halt()
    }

    /// Resumes the paused processes.
    pub(super) fn go_on(&self) {
        let mut state = self.lock();
        state.is_halted = false;
        state.go_on();
    }

    /// Kills all processes, now or as soon as they have started. Does not wait for their end.
    pub(super) fn kill(&self) {
        let mut state = self.lock();
        state.is_killed = true;
        state.kill();
    }

    pub(super) fn is_killed(&self) -> bool {
        self.lock().is_killed
    }

    /// Waits for the leader's end, and kills remaining processes.
    pub(super) fn wait(&self, child: &mut Child) -> io::Result<ExitStatus> {
        // The pid of a leader that has exited is not reused before it is reaped.
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
            // The first process inside a sandbox is in no process group of its parent, and dies
            // with it only from some point of its own start on. Therefore it is killed first, while
            // its stopped parent cannot start another. Each call fails if there is no such process.
            let _ = kill_process(leader, Signal::STOP);
            wait_until_stopped(leader);
            for child in children(leader) {
                let _ = kill_process(child, Signal::KILL);
            }
            let _ = kill_process_group(leader, Signal::KILL);
        }
        if let Some(cgroup) = &self.cgroup {
            cgroup.kill();
        }
    }

    /// Stops all processes. A stopped process starts no others, so a round eventually finds none
    /// that runs. A process whose parent exits meanwhile is found in the next round.
    fn halt(&mut self) -> io::Result<()> {
        for _ in 0..ROUNDS {
            let mut is_quiet = true;
            for pid in self.members() {
                let is_new = !self.halted.contains(&pid.as_raw_pid());
                match state_of(pid) {
                    // The process had stopped itself, or has stopped.
                    Some('T' | 't') | None => {}
                    // A process in uninterruptible sleep, or a zombie with live threads, stops when
                    // it can.
                    Some('D' | 'Z') if !is_new => {}
                    Some(_) => {
                        is_quiet = false;
                        self.halted.insert(pid.as_raw_pid());
                        // The process may have exited.
                        let _ = kill_process(pid, Signal::STOP);
                    }
                }
            }
            if is_quiet {
                return Ok(());
            }
            thread::sleep(PAUSE);
        }
        Err(io::Error::other("its programs start others faster than they are halted"))
    }

    fn go_on(&mut self) {
        // A process that is no longer a member has exited, and its pid may be reused.
        for pid in self.members().into_iter().filter(|pid| self.halted.contains(&pid.as_raw_pid())) {
            let _ = kill_process(pid, Signal::CONT);
        }
        self.halted.clear();
    }

    /// Returns all processes of the command that can be found: the descendants of the leader, and
    /// the members of its control group.
    fn members(&self) -> Vec<Pid> {
        let mut found: Vec<_> = self.leader.into_iter().collect();
        let mut at = 0;
        while let Some(parent) = found.get(at).copied() {
            found.extend(children(parent));
            at += 1;
        }
        let grouped = self.cgroup.iter().flat_map(Cgroup::processes);
        found.extend(grouped.filter(|_| self.leader.is_some()));
        found.sort_unstable_by_key(|pid| pid.as_raw_pid());
        found.dedup();
        found
    }
}

/// Number of checks whether a process has stopped: that takes microseconds, unless the system is
/// busy.
const LOOKS: usize = 1_000;

/// Returns the state letter of a process; `None` if it does not exist.
fn state_of(pid: Pid) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
    // The name before the state is arbitrary and may contain a bracket.
    stat.rsplit_once(") ")?.1.chars().next()
}

fn wait_until_stopped(pid: Pid) {
    let runs = || state_of(pid).is_some_and(|state| !matches!(state, 'T' | 'Z' | 'X'));
    for _ in 0..LOOKS {
        if !runs() {
            return;
        }
        thread::yield_now();
    }
}

/// Returns the children of a process, including adopted ones.
fn children(parent: Pid) -> Vec<Pid> {
    let place = format!("/proc/{}", parent.as_raw_nonzero());
    let tasks = fs::read_dir(format!("{place}/task")).into_iter().flatten().flatten();
    let listed = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    let numbers =
        listed.flat_map(|list| list.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>());
    numbers.filter_map(Pid::from_raw).collect()
}
