//! Parts of a pattern, as turns of members.

use std::sync::Arc;

use agent_core::{Part, UserMessage};

use super::TeamState;
use crate::{
    command::{Outcome, Reply},
    mail::{Actor, TeamMessage},
    member::{Member, Turn},
    refusal::{RefusalKind, Refused},
};

impl TeamState {
    /// Input of the run of a pattern.
    pub(crate) fn input(&self) -> &str {
        &self.input
    }

    /// The open turn `run` of a member.
    pub(crate) fn open_turn(&self, member: &str, run: &str) -> Option<&Turn> {
        self.member(member)?.turn.as_ref().filter(|turn| *turn.run == *run)
    }

    /// Takes the input of a new run of a pattern. Turns that an earlier run left open are over.
    pub(super) fn begin_pattern(&mut self, messages: &[Vec<Part>]) {
        let texts = messages.iter().map(|parts| UserMessage::new(parts.clone()).text());
        self.input = texts.collect::<Vec<_>>().join("\n\n");
        self.members.values_mut().for_each(|member| member.turn = None);
    }

    /// Begins a part: a turn of the member with the part's name, which receives the part's text.
    pub(super) fn begin_part(
        &mut self,
        id: &Arc<str>,
        role: &Arc<str>,
        run: &Arc<str>,
        text: &str,
        time: u64,
    ) -> Outcome {
        if self.settings.pattern.is_none() {
            return Err(Refused::conflict("the team runs no pattern"));
        }
        if self.is_out_of_rounds() {
            return Err(Refused::new(RefusalKind::Limit, "the limit on turns is reached"));
        }
        self.rounds += 1;
        let message = TeamMessage {
            number: u64::from(self.rounds),
            from: Actor::Team,
            to: vec![id.clone()],
            broadcast: false,
            parts: vec![Part::text(text)],
            time,
        };
        let turn = Turn::new(run.clone(), vec![Arc::new(message)], time);
        let member = self.members.entry(id.clone()).or_insert_with(|| Member::new(id.clone(), role.clone()));
        member.turns += 1;
        (member.turn, member.error) = (Some(turn.clone()), None);
        Ok(Reply::Turn(Box::new(turn)))
    }
}
