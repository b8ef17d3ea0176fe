//! Members and their turns.

use std::{collections::BTreeMap, sync::Arc};

use agent_core::{Answer, ExitReason, Message, Question, Usage};
use serde::{Deserialize, Serialize};

use crate::mail::TeamMessage;

/// Id of the leader.
pub const LEADER: &str = "leader";

/// Status of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum MemberStatus {
    /// The member has no turn: it waits for a message and uses no process.
    Idle,
    /// The member's turn is running.
    Running,
    /// The member's turn is suspended: it waits for answers to questions.
    Waiting,
    /// The member's last turn failed. A message starts the next one.
    Error,
    /// The member was removed.
    Removed,
}

impl MemberStatus {
    /// The status in lower case.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Error => "error",
            Self::Removed => "removed",
        }
    }
}

/// A turn of a member: one run of its agent, with the messages that were delivered to it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Turn {
    /// Id of the run, derived from the team's run, the member and the number of the turn.
    pub run: Arc<str>,
    /// The messages that the turn delivers, in the order of sending.
    pub messages: Vec<Arc<TeamMessage>>,
    /// Start time, in milliseconds since 1970, UTC.
    pub began: u64,
    /// Questions that the run waits for.
    pub questions: Vec<Question>,
    /// Answers that were given since the run was suspended, by question id.
    pub(crate) answers: BTreeMap<String, Answer>,
    /// True once the leader was notified that the turn takes long.
    pub(crate) is_stalled: bool,
}

impl Turn {
    pub(crate) fn new(run: Arc<str>, messages: Vec<Arc<TeamMessage>>, began: u64) -> Self {
        Self { run, messages, began, questions: Vec::new(), answers: BTreeMap::new(), is_stalled: false }
    }

    /// The input of the run.
    pub(crate) fn input(&self, is_leader: bool) -> Vec<Message> {
        self.messages.iter().map(|message| message.for_model(is_leader)).collect()
    }

    /// The input of the run of a pattern's part: its text, unchanged.
    pub(crate) fn plain_input(&self) -> Vec<Message> {
        self.messages.iter().map(|message| Message::user(message.text())).collect()
    }

    /// The questions that were not answered since the run was suspended.
    pub(crate) fn open_questions(&self) -> impl Iterator<Item = &Question> {
        self.questions.iter().filter(|question| !self.answers.contains_key(&question.id))
    }

    /// True if the run waits for answers, and none was given since.
    pub(crate) fn is_suspended(&self) -> bool {
        !self.questions.is_empty() && self.answers.is_empty()
    }
}

/// End of a turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TurnEnd {
    /// The run finished.
    Finished {
        /// Reason of the end.
        reason: ExitReason,
        /// Last text of the model.
        text: String,
    },
    /// The team cancelled the run.
    Cancelled,
    /// The run failed.
    Failed {
        /// Text of the error.
        error: String,
    },
}

/// A member of a team.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Member {
    /// Id: `leader`, or the role and a number, such as `builder-1`.
    pub id: Arc<str>,
    /// Role under which the member's agent was declared.
    pub role: Arc<str>,
    /// Number of turns that began.
    pub turns: u32,
    /// The turn that is running or suspended.
    pub turn: Option<Turn>,
    /// Last text of the member's model.
    pub text: String,
    /// Error of the last turn, if it failed.
    pub error: Option<String>,
    /// Usage of all ended turns.
    pub usage: Usage,
    /// True if the member was removed.
    pub removed: bool,
}

impl Member {
    pub(crate) fn new(id: Arc<str>, role: Arc<str>) -> Self {
        Self {
            id,
            role,
            turns: 0,
            turn: None,
            text: String::new(),
            error: None,
            usage: Usage::default(),
            removed: false,
        }
    }

    /// Status of the member.
    pub fn status(&self) -> MemberStatus {
        match &self.turn {
            _ if self.removed => MemberStatus::Removed,
            Some(turn) if turn.is_suspended() => MemberStatus::Waiting,
            Some(_) => MemberStatus::Running,
            None if self.error.is_some() => MemberStatus::Error,
            None => MemberStatus::Idle,
        }
    }

    /// True if this is the leader.
    pub fn is_leader(&self) -> bool {
        *self.id == *LEADER
    }
}

/// Name of the session of a member.
pub(crate) fn member_session(team: &str, member: &str) -> Arc<str> {
    format!("{team}:{member}").into()
}
