//! Refusals of commands.

use std::fmt;

use agent_core::{Error, ErrorKind};
use serde::{Deserialize, Serialize};

/// Class of a [`Refused`] command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RefusalKind {
    /// The team's state does not allow the command now, for example because another member claimed
    /// the task first.
    Conflict,
    /// There is no such member, role, task or question.
    NotFound,
    /// The actor lacks the permission.
    NotAllowed,
    /// A limit of the team is reached.
    Limit,
    /// The arguments are invalid.
    Invalid,
    /// The team has ended, or has not started.
    Ended,
}

/// Reason for which a command changed nothing. The message is for people and models.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Refused {
    /// Class of the refusal.
    pub kind: RefusalKind,
    /// Description of the reason.
    pub message: String,
}

impl Refused {
    pub(crate) fn new(kind: RefusalKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    pub(crate) fn conflict(message: impl Into<String>) -> Self {
        Self::new(RefusalKind::Conflict, message)
    }

    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self::new(RefusalKind::NotFound, message)
    }

    pub(crate) fn not_allowed(message: impl Into<String>) -> Self {
        Self::new(RefusalKind::NotAllowed, message)
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(RefusalKind::Invalid, message)
    }

    /// Returns the reason why a command was refused, if `error` reports a refusal.
    ///
    /// ```
    /// use agent_core::Error;
    /// use agent_team::Refused;
    ///
    /// assert!(Refused::of(&Error::tool("the disk is full")).is_none());
    /// ```
    pub fn of(error: &Error) -> Option<&Self> {
        std::error::Error::source(error)?.downcast_ref()
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Refused {}

impl From<Refused> for Error {
    fn from(refused: Refused) -> Self {
        let kind = match refused.kind {
            RefusalKind::Ended => ErrorKind::Stale,
            _ => ErrorKind::InvalidRequest,
        };
        Self::new(kind, refused.message.clone()).with_source(refused)
    }
}
