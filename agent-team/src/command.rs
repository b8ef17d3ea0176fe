//! Commands: the entries of a team's journal.

use std::sync::Arc;

use agent_core::{Answer, Part, Question, Usage};
use serde::{Deserialize, Serialize};

use crate::{
    board::{NewTask, Task, TaskStatus},
    end::TeamEndReason,
    mail::Actor,
    member::{Turn, TurnEnd},
    refusal::Refused,
    settings::Settings,
};

/// One entry of a team's journal: a command, with its author.
///
/// The journal orders all commands, whichever process appended them, and the fold decides which of
/// them take effect: every reader reaches the same decision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct TeamEntry {
    /// Idempotency key: a second command with the same key changes nothing and has the outcome of the
    /// first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) key: Option<String>,
    /// Author.
    pub(crate) by: Actor,
    /// Run id of the member's turn that issued the command. A command of a turn that is over is
    /// refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) turn: Option<Arc<str>>,
    /// Time, in milliseconds since 1970, UTC.
    pub(crate) time: u64,
    /// Writer that appended the entry, and its number there.
    pub(crate) origin: (Arc<str>, u64),
    /// The command.
    pub(crate) command: Command,
}

/// A change of a team.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Command {
    /// Starts a run of the team; the messages go to the leader.
    Start { run: Arc<str>, settings: Settings, messages: Vec<Vec<Part>> },
    /// Adds a member.
    Spawn { role: String },
    /// Removes an idle member.
    Remove { member: Arc<str> },
    /// Creates a task.
    CreateTask(NewTask),
    /// Claims a task, by default for the author.
    ClaimTask { task: String, assignee: Option<Arc<str>> },
    /// Changes the status of a task.
    UpdateTask { task: String, status: TaskStatus, result: Option<String> },
    /// Returns a task to the board.
    ReleaseTask { task: String },
    /// Sends a message to one member.
    Message { to: Arc<str>, parts: Vec<Part> },
    /// Sends a message to all other members.
    Broadcast { parts: Vec<Part> },
    /// Ends the run as finished.
    Finish { summary: String, force: bool },
    /// Begins a turn of a member, which delivers its messages.
    BeginTurn { member: Arc<str> },
    /// Records the questions of a suspended turn.
    SuspendTurn {
        member: Arc<str>,
        run: Arc<str>,
        questions: Vec<Question>,
        /// Ids of the questions whose answers the run received.
        used: Vec<String>,
    },
    /// Answers a question of a suspended turn.
    Answer { member: Arc<str>, question: String, answer: Answer },
    /// Ends a turn.
    EndTurn { member: Arc<str>, run: Arc<str>, end: TurnEnd, usage: Usage },
    /// Applies timers that are due: leases, deadlines, stalls.
    Tick {},
    /// All members are idle: notifies the leader, or ends the run as quiescent.
    Idle {},
    /// Ends the run.
    End { reason: TeamEndReason },
    /// Begins a part of the team's pattern: a turn of a member that is created if it does not exist.
    BeginPart { member: Arc<str>, role: Arc<str>, run: Arc<str>, text: String },
    /// Ends the run of the team's pattern with its result.
    Complete { reason: TeamEndReason, text: String },
}

impl Command {
    /// True if the command is bookkeeping of the driver, which does not count as progress.
    pub(crate) fn is_bookkeeping(&self) -> bool {
        matches!(
            self,
            Self::Start { .. }
                | Self::BeginTurn { .. }
                | Self::SuspendTurn { .. }
                | Self::EndTurn { .. }
                | Self::Tick {}
                | Self::Idle {}
                | Self::End { .. }
                | Self::BeginPart { .. }
                | Self::Complete { .. }
        )
    }
}

/// Result of a command that took effect.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Reply {
    Done,
    /// Id of the new member.
    Spawned(Arc<str>),
    /// The task as the command left it.
    Task(Box<Task>),
    /// Number of the message, and its recipients.
    Sent(u64, Vec<Arc<str>>),
    /// The turn that began.
    Turn(Box<Turn>),
}

/// Outcome of a command.
pub(crate) type Outcome = Result<Reply, Refused>;
