//! Tasks are created, claimed, completed and released.

use std::sync::Arc;

use agent_core::Part;

use super::TeamState;
use crate::{
    board::{NewTask, TaskStatus},
    command::{Outcome, Reply},
    mail::Actor,
    member::LEADER,
    refusal::Refused,
};

impl TeamState {
    pub(super) fn create_task(&mut self, by: &Actor, new: &NewTask, time: u64) -> Outcome {
        self.only_leader(by, "create tasks")?;
        let task = self.board.create(new.clone(), &self.settings.deliverables, time)?;
        Ok(Reply::Task(Box::new(task.clone())))
    }

    /// Claims a task. An assignee that is not the author receives a message.
    pub(super) fn claim_task(&mut self, by: &Actor, id: &str, assignee: Option<&Arc<str>>, time: u64) -> Outcome {
        let member = match (assignee, by.member()) {
            (Some(assignee), author) if author != Some(assignee) => {
                self.only_leader(by, "assign tasks to others")?;
                self.active(assignee)?.id.clone()
            }
            (_, Some(author)) => author.clone(),
            (_, None) => return Err(Refused::invalid("name the assignee")),
        };
        self.board.claim(id, &member, time, self.settings.task_lease)?;
        let task = self.board.find(id)?.clone();
        if by.member() != Some(&member) {
            let text = format!("You were assigned task {id}: {}\n\n{}", task.title, task.description);
            self.mail.send(by.clone(), vec![member], false, vec![Part::text(text.trim_end())], time);
        }
        Ok(Reply::Task(Box::new(task)))
    }

    pub(super) fn update_task(
        &mut self,
        by: &Actor,
        id: &str,
        status: TaskStatus,
        result: Option<String>,
        time: u64,
    ) -> Outcome {
        match status {
            TaskStatus::Pending => return self.release_task(by, id),
            TaskStatus::InProgress => return self.claim_task(by, id, None, time),
            TaskStatus::Completed => {}
        }
        self.only_owner(by, id)?;
        self.board.complete(id, result)?;
        Ok(Reply::Task(Box::new(self.board.find(id)?.clone())))
    }

    pub(super) fn release_task(&mut self, by: &Actor, id: &str) -> Outcome {
        self.only_owner(by, id)?;
        self.board.release(id, &format!("released by {by}"))?;
        Ok(Reply::Task(Box::new(self.board.find(id)?.clone())))
    }

    /// Returns the task that a member works on to the board.
    pub(super) fn release_tasks_of(&mut self, member: &str, note: &str) -> Option<String> {
        let id = self.board.in_progress_of(member)?.id.clone();
        self.board.release(&id, note).ok()?;
        Some(id)
    }

    /// Refuses members that neither own the task nor lead the team.
    fn only_owner(&self, by: &Actor, id: &str) -> Result<(), Refused> {
        let task = self.board.find(id)?;
        match by.member() {
            Some(member) if **member != *LEADER && task.owner.as_ref() != Some(member) => {
                let owner = task.owner.as_deref().unwrap_or("nobody");
                Err(Refused::not_allowed(format!(
                    "task {id} belongs to {owner}: only its owner or the leader may change it"
                )))
            }
            _ => Ok(()),
        }
    }
}
