//! Turns of members begin, are suspended, and end.

use std::sync::Arc;

use agent_core::{Answer, Question, Usage};

use super::TeamState;
use crate::{
    command::{Outcome, Reply},
    end::TeamEndReason,
    member::{LEADER, Turn, TurnEnd},
    refusal::{RefusalKind, Refused},
};

impl TeamState {
    /// Ids of the members that can begin a turn: idle, with undelivered messages.
    pub(crate) fn ready(&self) -> Vec<Arc<str>> {
        let is_ready = |id: &Arc<str>| self.mail.waiting(id) > 0;
        let idle = self.active_members().filter(|member| member.turn.is_none());
        idle.map(|member| member.id.clone()).filter(is_ready).collect()
    }

    /// True if the limit on turns allows no further one.
    pub(crate) fn is_out_of_rounds(&self) -> bool {
        self.settings.max_rounds.is_some_and(|most| self.rounds >= most)
    }

    /// Begins a turn with all undelivered messages. The run id is derived from the team's run, the
    /// member and the number of the turn, so that a run that began before a crash is found again.
    pub(super) fn begin_turn(&mut self, id: &Arc<str>, time: u64) -> Outcome {
        let member = self.active(id)?;
        if member.turn.is_some() {
            return Err(Refused::conflict(format!("member {id} has an open turn")));
        }
        if self.mail.waiting(id) == 0 {
            return Err(Refused::conflict(format!("member {id} has no messages")));
        }
        if self.is_out_of_rounds() {
            return Err(Refused::new(RefusalKind::Limit, "the limit on turns is reached"));
        }
        let number = member.turns + 1;
        let team_run = self.run.as_deref().unwrap_or_default();
        let run: Arc<str> = format!("{team_run}-{id}-{number}").into();
        let turn = Turn::new(run, self.mail.take(id), time);
        self.rounds += 1;
        if let Some(member) = self.members.get_mut(id) {
            (member.turns, member.turn, member.error) = (number, Some(turn.clone()), None);
        }
        self.renew_lease(id, time);
        Ok(Reply::Turn(Box::new(turn)))
    }

    pub(super) fn suspend_turn(&mut self, id: &str, run: &str, questions: &[Question], used: &[String]) -> Outcome {
        if let Some(turn) = self.turn_mut(id, run) {
            turn.questions = questions.to_vec();
            turn.answers.retain(|id, _| !used.contains(id) && questions.iter().any(|question| question.id == *id));
        }
        Ok(Reply::Done)
    }

    pub(super) fn answer(&mut self, id: &str, question: &str, answer: &Answer) -> Outcome {
        self.active(id)?;
        let turn = self.members.get_mut(id).and_then(|member| member.turn.as_mut());
        let open: Vec<_> = turn.iter().flat_map(|turn| turn.open_questions()).map(|asked| asked.id.as_str()).collect();
        if !open.contains(&question) {
            let open = if open.is_empty() { "none".to_owned() } else { open.join(", ") };
            return Err(Refused::not_found(format!("member {id} has no open question '{question}'; open: {open}")));
        }
        if let Some(turn) = turn {
            turn.answers.insert(question.to_owned(), answer.clone());
        }
        Ok(Reply::Done)
    }

    /// Ends a turn. If it failed, the member's task returns to the board and the leader is notified;
    /// if the leader failed, so did the team.
    pub(super) fn end_turn(
        &mut self,
        id: &Arc<str>,
        run: &Arc<str>,
        end: &TurnEnd,
        usage: Usage,
        time: u64,
    ) -> Outcome {
        if self.turn_mut(id, run).is_none() {
            return Ok(Reply::Done);
        }
        self.outcomes.retain(|key, _| key.strip_prefix(&**run).is_none_or(|rest| !rest.starts_with('/')));
        self.usage += usage;
        let Some(member) = self.members.get_mut(id) else { return Ok(Reply::Done) };
        member.turn = None;
        member.usage += usage;
        let problem = match end {
            TurnEnd::Cancelled => None,
            TurnEnd::Finished { reason, text } => {
                member.text.clone_from(text);
                (!reason.is_complete()).then(|| format!("{id} ended its turn before it was done ({reason})."))
            }
            TurnEnd::Failed { error } => {
                member.error = Some(error.clone());
                Some(format!("{id} failed: {error}"))
            }
        };
        self.renew_lease(id, time);
        let Some(mut problem) = problem else { return Ok(Reply::Done) };
        if **id == *LEADER {
            if let TurnEnd::Failed { error } = end {
                self.end_with(TeamEndReason::Failed(error.clone()), None, Some(id.clone()));
            }
            return Ok(Reply::Done);
        }
        if let TurnEnd::Failed { .. } = end
            && let Some(task) = self.release_tasks_of(id, &format!("{id} failed"))
        {
            problem.push_str(&format!("\nTask {task} returned to the board."));
        }
        if self.is_open() {
            self.notify_leader(problem, time);
        }
        Ok(Reply::Done)
    }

    /// The lease of a member's claim begins anew.
    fn renew_lease(&mut self, member: &str, time: u64) {
        if let Some(lease) = self.settings.task_lease {
            self.board.renew(member, time.saturating_add(lease));
        }
    }
}
