//! [`Group`]: the processes of one command.

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

/// The processes of one command, until they have ended.
#[derive(Debug, Default)]
pub(super) struct Group(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// The leader, until it is waited for: then its number may be another's.
    leader: Option<Pid>,
    cgroup: Option<Cgroup>,
    is_killed: bool,
    is_halted: bool,
    /// The processes that were halted, by their numbers: one that had stopped by itself does not go on with them.
    halted: BTreeSet<i32>,
}

/// How often all processes of a command are looked at until none runs, and how long after the last time.
const ROUNDS: usize = 2_000;
const PAUSE: Duration = Duration::from_millis(1);

impl Group {
    /// The leader has started.
    pub(super) fn started(&self, child: &Child, cgroup: Option<Cgroup>) {
        let mut state = self.lock();
        state.leader = Some(Pid::from_child(child));
        state.cgroup = cgroup;
        if state.is_killed {
            state.kill();
        } else if state.is_halted {
            // Whoever halts waits for that; who starts does not know what to do about it.
            let _ = state.halt();
        }
    }

    /// Halts all of them, or as soon as they have started.
    pub(super) fn halt(&self) -> io::Result<()> {
        let mut state = self.lock();
        state.is_halted = true;
        state.halt()
    }

    /// Lets those go on that were halted.
    pub(super) fn go_on(&self) {
        let mut state = self.lock();
        state.is_halted = false;
        state.go_on();
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

    /// A process that has stopped starts no other, so at last a round finds none that runs. One whose parent ends meanwhile is found in the next round.
    fn halt(&mut self) -> io::Result<()> {
        for _ in 0..ROUNDS {
            let mut is_quiet = true;
            for pid in self.members() {
                let is_new = !self.halted.contains(&pid.as_raw_pid());
                match state_of(pid) {
                    // It stopped by itself, or has.
                    Some('T' | 't') | None => {}
                    // One that waits for a disk, or is gone but for its threads, stops when it can.
                    Some('D' | 'Z') if !is_new => {}
                    Some(_) => {
                        is_quiet = false;
                        self.halted.insert(pid.as_raw_pid());
                        // It may have ended.
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
        // What is no member any more has ended, and its number may be another's.
        for pid in self.members().into_iter().filter(|pid| self.halted.contains(&pid.as_raw_pid())) {
            let _ = kill_process(pid, Signal::CONT);
        }
        self.halted.clear();
    }

    /// All processes of the command that can be found: those below the leader, and those of its control group.
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

/// How often it is looked whether a process has stopped: it does so within microseconds, unless the system holds it up.
const LOOKS: usize = 1_000;

/// The letter of a process's state; none if there is no such process.
fn state_of(pid: Pid) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
    // The name before the state may hold anything, a bracket too.
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

/// The processes that a process has started itself, and those that were left to it.
fn children(parent: Pid) -> Vec<Pid> {
    let place = format!("/proc/{}", parent.as_raw_nonzero());
    let tasks = fs::read_dir(format!("{place}/task")).into_iter().flatten().flatten();
    let listed = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    let numbers =
        listed.flat_map(|list| list.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>());
    numbers.filter_map(Pid::from_raw).collect()
}
