//! Ends of team runs.

use std::{fmt, sync::Arc};

use agent_core::{Question, Usage};
use serde::{Deserialize, Serialize};

use crate::{
    board::Board,
    member::{Member, MemberStatus},
};

/// Reason why a team run ended or was suspended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TeamEndReason {
    /// The leader called `finish_team`.
    Finished,
    /// All members were idle, no message was undelivered, and the leader made no progress when it was
    /// notified.
    Quiescent,
    /// The limit on turns was reached.
    Rounds,
    /// The team's deadline passed.
    Deadline,
    /// The team's budget was exhausted.
    Budget,
    /// The team was stopped by its user.
    Stopped,
    /// The leader failed, with this error.
    Failed(String),
    /// Suspended: members wait for answers to [`TeamEnd::questions`].
    Waiting,
    /// Suspended: the run was paused.
    Paused,
    /// Suspended: the run was cancelled in this process.
    Cancelled,
}

impl TeamEndReason {
    /// True unless the run is only suspended, and can be resumed.
    pub fn is_final(&self) -> bool {
        !matches!(self, Self::Waiting | Self::Paused | Self::Cancelled)
    }

    /// Name of the reason in lower case.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Finished => "finished",
            Self::Quiescent => "quiescent",
            Self::Rounds => "rounds",
            Self::Deadline => "deadline",
            Self::Budget => "budget",
            Self::Stopped => "stopped",
            Self::Failed(_) => "failed",
            Self::Waiting => "waiting",
            Self::Paused => "paused",
            Self::Cancelled => "cancelled",
        }
    }
}

impl fmt::Display for TeamEndReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(error) => write!(f, "failed: {error}"),
            reason => f.write_str(reason.as_str()),
        }
    }
}

/// A question of a member.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TeamQuestion {
    /// Id of the member that asks.
    pub member: Arc<str>,
    /// The question.
    pub question: Question,
}

/// A member as others see it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct MemberInfo {
    /// Id, such as `builder-1`.
    pub id: Arc<str>,
    /// Role.
    pub role: Arc<str>,
    /// Status.
    pub status: MemberStatus,
    /// Id of the task that the member works on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// Number of messages that are not delivered yet.
    pub unread: usize,
    /// Number of turns that began.
    pub turns: u32,
    /// Usage of all ended turns.
    pub usage: Usage,
    /// Error of the last turn, if it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl MemberInfo {
    pub(crate) fn of(member: &Member, board: &Board, unread: usize) -> Self {
        Self {
            id: member.id.clone(),
            role: member.role.clone(),
            status: member.status(),
            task: board.in_progress_of(&member.id).map(|task| task.id.clone()),
            unread,
            turns: member.turns,
            usage: member.usage,
            error: member.error.clone(),
        }
    }
}

/// End of a team run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TeamEnd {
    /// Id of the team run.
    pub run: Arc<str>,
    /// Name of the team's session.
    pub session: Arc<str>,
    /// Reason of the end.
    pub reason: TeamEndReason,
    /// Summary of `finish_team`, or else the leader's last text.
    pub text: String,
    /// The task board.
    pub board: Board,
    /// The members, including removed ones.
    pub members: Vec<MemberInfo>,
    /// Open questions of members.
    pub questions: Vec<TeamQuestion>,
    /// Usage of all ended turns of the run.
    pub usage: Usage,
    /// Number of turns that began in the run.
    pub rounds: u32,
}
