//! Members join and leave.

use std::sync::Arc;

use super::TeamState;
use crate::{
    command::{Outcome, Reply},
    mail::Actor,
    member::{LEADER, Member},
    refusal::{RefusalKind, Refused},
};

impl TeamState {
    pub(super) fn spawn(&mut self, by: &Actor, role: &str) -> Outcome {
        self.only_leader(by, "spawn members")?;
        if !self.settings.roles.contains_key(role) {
            let known: Vec<_> = self.settings.roles.keys().map(String::as_str).collect();
            return Err(Refused::not_found(format!("unknown role '{role}'; roles: {}", known.join(", "))));
        }
        let (most, active) = (self.settings.max_members, self.teammates().count());
        if active >= most as usize {
            let message = format!("the team has {active} members besides the leader, the most that it may have");
            return Err(Refused::new(RefusalKind::Limit, message));
        }
        let number = self.spawned.entry(role.to_owned()).or_default();
        *number += 1;
        let id: Arc<str> = format!("{role}-{number}").into();
        self.members.insert(id.clone(), Member::new(id.clone(), role.into()));
        Ok(Reply::Spawned(id))
    }

    /// Removes an idle member. Its task returns to the board, and its undelivered messages return to
    /// their senders.
    pub(super) fn remove(&mut self, by: &Actor, id: &Arc<str>, time: u64) -> Outcome {
        self.only_leader(by, "remove members")?;
        if **id == *LEADER {
            return Err(Refused::invalid("the leader cannot be removed"));
        }
        let member = self.active(id)?;
        if member.turn.is_some() {
            let status = member.status().as_str();
            return Err(Refused::conflict(format!("member {id} is {status}: only idle members can be removed")));
        }
        self.release_tasks_of(id, &format!("{id} was removed"));
        for message in self.mail.take(id) {
            let returned =
                format!("Your message to {id} was not delivered, because {id} was removed:\n{}", message.text());
            if let Some(sender) = message.from.member().filter(|sender| self.active(sender).is_ok()) {
                let parts = vec![agent_core::Part::text(returned)];
                self.mail.send(Actor::Team, vec![sender.clone()], false, parts, time);
            }
        }
        if let Some(member) = self.members.get_mut(id) {
            member.removed = true;
        }
        Ok(Reply::Done)
    }

    /// The members besides the leader that were not removed.
    pub(super) fn teammates(&self) -> impl Iterator<Item = &Member> {
        self.active_members().filter(|member| !member.is_leader())
    }
}
