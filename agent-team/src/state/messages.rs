//! Messages are sent.

use std::sync::Arc;

use agent_core::Part;

use super::TeamState;
use crate::{
    command::{Outcome, Reply},
    mail::Actor,
    refusal::Refused,
};

impl TeamState {
    pub(super) fn message(&mut self, by: &Actor, to: &Arc<str>, parts: &[Part], time: u64) -> Outcome {
        let to = self.active(to)?.id.clone();
        if by.member() == Some(&to) {
            return Err(Refused::invalid("a member cannot send a message to itself"));
        }
        has_content(parts)?;
        let number = self.mail.send(by.clone(), vec![to.clone()], false, parts.to_vec(), time);
        Ok(Reply::Sent(number, vec![to]))
    }

    /// Sends a message to all members but the sender.
    pub(super) fn broadcast(&mut self, by: &Actor, parts: &[Part], time: u64) -> Outcome {
        has_content(parts)?;
        let others = self.active_members().map(|member| &member.id).filter(|id| by.member() != Some(id));
        let to: Vec<_> = others.cloned().collect();
        if to.is_empty() {
            return Err(Refused::conflict("there is no other member"));
        }
        let number = self.mail.send(by.clone(), to.clone(), true, parts.to_vec(), time);
        Ok(Reply::Sent(number, to))
    }
}

fn has_content(parts: &[Part]) -> Result<(), Refused> {
    match parts.iter().all(|part| part.as_text().is_some_and(|text| text.trim().is_empty())) {
        true => Err(Refused::invalid("the message is empty")),
        false => Ok(()),
    }
}
