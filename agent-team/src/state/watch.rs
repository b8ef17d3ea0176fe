//! The watchdog: idleness, stalls, leases and deadlines.

use std::sync::Arc;

use super::TeamState;
use crate::{
    board::{Task, TaskStatus},
    command::{Outcome, Reply},
    end::TeamEndReason,
    member::Member,
    refusal::Refused,
};

impl TeamState {
    /// Time at which the run's deadline passes, in milliseconds since 1970, UTC.
    pub(crate) fn deadline(&self) -> Option<u64> {
        self.settings.deadline.map(|limit| self.started.saturating_add(limit))
    }

    /// True if no member has an open turn or an undelivered message.
    pub(crate) fn is_idle(&self) -> bool {
        self.active_members().all(|member| member.turn.is_none() && self.mail.waiting(&member.id) == 0)
    }

    /// Time of the next event for which the fold needs a tick, in milliseconds since 1970, UTC.
    pub(crate) fn next_timer(&self) -> Option<u64> {
        let leases = self.expiring().map(|(_, until)| until);
        let deadlines = self.due().filter_map(|task| task.deadline);
        let stalls = self.stalling().map(|(_, at)| at);
        leases.chain(deadlines).chain(stalls).min()
    }

    /// Applies the timers that are due at `time`: tasks whose lease expired return to the board, and
    /// the leader is notified of passed deadlines and of long turns, once for each.
    pub(super) fn tick(&mut self, time: u64) {
        let expired: Vec<_> = self.expiring().filter(|(_, until)| *until <= time).map(|(task, _)| task).collect();
        for (id, owner) in expired {
            if self.board.release(&id, "the lease of the claim expired").is_ok() {
                self.notify_leader(
                    format!("Task {id} returned to the board: {owner} did not work on it in time."),
                    time,
                );
            }
        }
        let due = self.due().filter(|task| task.deadline.is_some_and(|at| at <= time));
        let overdue: Vec<_> = due.map(|task| (task.id.clone(), task.status)).collect();
        for (id, status) in overdue {
            self.board.set_overdue(&id);
            self.notify_leader(format!("The deadline of task {id} passed; it is {}.", status.as_str()), time);
        }
        let stalled: Vec<_> = self.stalling().filter(|(_, at)| *at <= time).map(|(id, _)| id).collect();
        for id in stalled {
            if let Some(turn) = self.members.get_mut(&id).and_then(|member| member.turn.as_mut()) {
                turn.is_stalled = true;
                self.notify_leader(format!("The turn of {id} has been running for a long time."), time);
            }
        }
    }

    /// Claims of members without a turn, with the end of their lease.
    fn expiring(&self) -> impl Iterator<Item = ((String, Arc<str>), u64)> {
        let in_progress = self.board.tasks().filter(|task| task.status == TaskStatus::InProgress);
        in_progress.filter_map(|task| {
            let (owner, until) = (task.owner.clone()?, task.claims.last()?.until?);
            let is_working = self.member(&owner).is_some_and(|member| member.turn.is_some());
            (!is_working).then_some(((task.id.clone(), owner), until))
        })
    }

    /// Open tasks whose deadline was not reported.
    fn due(&self) -> impl Iterator<Item = &Task> {
        self.board.open().filter(|task| task.deadline.is_some() && !task.overdue)
    }

    /// Running turns of members besides the leader that were not reported, with the time at which
    /// they are.
    fn stalling(&self) -> impl Iterator<Item = (Arc<str>, u64)> {
        let of_member = |member: &Member| {
            let turn = member.turn.as_ref().filter(|turn| !turn.is_stalled && turn.questions.is_empty())?;
            Some((member.id.clone(), turn.began.saturating_add(self.settings.stall_after?)))
        };
        self.teammates().filter_map(of_member)
    }

    /// All members are idle: notifies the leader, or ends the run if the leader made no progress since
    /// it was notified.
    pub(super) fn notice_idleness(&mut self, time: u64) -> Outcome {
        if !self.is_idle() {
            return Err(Refused::conflict("the team is not idle"));
        }
        let is_done = self.board.open().next().is_none() && !self.board.is_empty();
        if self.idle + 1 >= self.settings.max_idle_turns || (is_done && self.idle > 0) {
            self.end_with(TeamEndReason::Quiescent, None, None);
            return Ok(Reply::Done);
        }
        self.idle += 1;
        let notice = self.notice();
        self.notify_leader(notice, time);
        Ok(Reply::Done)
    }

    fn notice(&self) -> String {
        if self.teammates().next().is_none() {
            return "You have no teammates, and nobody answers a text. Spawn teammates, continue the work yourself, \
                    or call finish_team with a summary."
                .to_owned();
        }
        let open: Vec<_> = self.board.open().map(|task| format!("{} ({})", task.id, task.status.as_str())).collect();
        let tasks = match open.is_empty() {
            true => "No task is open.".to_owned(),
            false => format!("Open tasks: {}.", open.join(", ")),
        };
        format!(
            "All agents are idle. Review the task board and decide what is next: assign or create tasks, send messages, \
             or call finish_team with a summary. {tasks}"
        )
    }
}
