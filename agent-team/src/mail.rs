//! Messages between members, and their mailboxes.

use std::{
    collections::{BTreeMap, VecDeque},
    fmt,
    sync::Arc,
};

use agent_core::{Message, Part, UserMessage};
use serde::{Deserialize, Serialize};

/// Author of a message or of a change of the team.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Actor {
    /// The team itself: its driver and its watchdog.
    Team,
    /// The user.
    User,
    /// A member, by its id.
    Member(Arc<str>),
}

impl Actor {
    /// Id of the member, if the actor is one.
    pub fn member(&self) -> Option<&Arc<str>> {
        match self {
            Self::Member(id) => Some(id),
            Self::Team | Self::User => None,
        }
    }
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Team => "the team",
            Self::User => "the user",
            Self::Member(id) => id,
        })
    }
}

/// A message in a team.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TeamMessage {
    /// Number of the message, from 1, in the order of sending.
    pub number: u64,
    /// Sender.
    pub from: Actor,
    /// Ids of the recipients.
    pub to: Vec<Arc<str>>,
    /// True if the message was sent to all members.
    pub broadcast: bool,
    /// Content: text and attachments.
    pub parts: Vec<Part>,
    /// Time of sending, in milliseconds since 1970, UTC.
    pub time: u64,
}

impl TeamMessage {
    /// The text of the message, without attachments.
    pub fn text(&self) -> String {
        UserMessage::new(self.parts.clone()).text()
    }

    /// Returns the message as its recipient's model receives it. The leader receives messages of the
    /// user unchanged; every other message begins with a line that names the sender.
    pub(crate) fn for_model(&self, is_leader: bool) -> Message {
        if is_leader && self.from == Actor::User {
            return Message::User(UserMessage::new(self.parts.clone()));
        }
        let to_all = if self.broadcast { " to all members" } else { "" };
        let header = Part::text(format!("Message from {}{to_all}:", self.from));
        let parts = std::iter::once(header).chain(self.parts.iter().cloned()).collect();
        Message::User(UserMessage::new(parts))
    }
}

/// The undelivered messages of each recipient, in the order of sending.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Mailboxes {
    sent: u64,
    pending: BTreeMap<Arc<str>, VecDeque<Arc<TeamMessage>>>,
}

impl Mailboxes {
    /// Queues a message for each recipient and returns its number.
    pub(crate) fn send(&mut self, from: Actor, to: Vec<Arc<str>>, broadcast: bool, parts: Vec<Part>, time: u64) -> u64 {
        self.sent += 1;
        let message = Arc::new(TeamMessage { number: self.sent, from, to, broadcast, parts, time });
        for recipient in &message.to {
            self.pending.entry(recipient.clone()).or_default().push_back(message.clone());
        }
        message.number
    }

    /// Takes the undelivered messages of a recipient.
    pub(crate) fn take(&mut self, recipient: &str) -> Vec<Arc<TeamMessage>> {
        self.pending.remove(recipient).map(Vec::from).unwrap_or_default()
    }

    /// Number of undelivered messages of a recipient.
    pub(crate) fn waiting(&self, recipient: &str) -> usize {
        self.pending.get(recipient).map_or(0, VecDeque::len)
    }
}
