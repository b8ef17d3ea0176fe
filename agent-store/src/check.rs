//! Integrity check of a journal.

use std::fmt;

use agent_core::{Journal, Result};

/// Integrity problem of a journal.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem {
    /// The storage engine reports damage: restore a copy.
    Damaged(String),
    /// Entries are missing.
    Gap {
        /// The session.
        session: String,
        /// Sequence number of the first missing entry.
        seq: u64,
    },
    /// An entry cannot be read.
    Unreadable {
        /// The session.
        session: String,
        /// Sequence number of the entry.
        seq: u64,
        /// Reason why it cannot be read.
        reason: String,
    },
    /// A large string does not match its hash.
    WrongBlob {
        /// Hash under which the string is stored.
        hash: String,
    },
    /// A large string that no entry refers to. Harmless: repairing frees its space.
    UnusedBlob {
        /// Hash of the string.
        hash: String,
    },
    /// A writer died without releasing its lease. Harmless: the next writer takes the lease over,
    /// and repairing removes it.
    ExpiredLease {
        /// The session.
        session: String,
        /// The agent.
        agent: String,
    },
}

impl Problem {
    /// True if repairing removes the problem without loss of data.
    pub fn is_repairable(&self) -> bool {
        matches!(self, Self::UnusedBlob { .. } | Self::ExpiredLease { .. })
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Damaged(what) => write!(f, "the store is damaged: {what}"),
            Self::Gap { session, seq } => write!(f, "session '{session}': entries are missing from {seq} on"),
            Self::Unreadable { session, seq, reason } => {
                write!(f, "session '{session}': entry {seq} cannot be read: {reason}")
            }
            Self::WrongBlob { hash } => write!(f, "the large string {hash} was changed"),
            Self::UnusedBlob { hash } => write!(f, "the large string {hash} belongs to no entry"),
            Self::ExpiredLease { session, agent } => {
                write!(f, "session '{session}': the writer of agent '{agent}' died; its lease has expired")
            }
        }
    }
}

/// Reads all of a journal and reports missing and unreadable entries. Read-only. A store's own
/// `check` also verifies the storage.
///
/// # Errors
/// [`ErrorKind::Store`](agent_core::ErrorKind::Store) if the store fails other than on a single
/// entry.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), agent_core::Error> {
/// let journal = agent_core::MemoryJournal::default();
/// assert!(agent_store::check(&journal).await?.is_empty());
/// # Ok(())
/// # }
/// ```
pub async fn check(journal: &dyn Journal) -> Result<Vec<Problem>> {
    const PAGE: usize = 200;
    let mut problems = Vec::new();
    for session in journal.sessions().await? {
        let (mut after, mut limit) = (0, PAGE);
        loop {
            match journal.read(&session, after, limit).await {
                Ok(page) if page.is_empty() => break,
                Ok(page) => {
                    for entry in page {
                        note_gap(&mut problems, &session, after, entry.seq);
                        after = entry.seq;
                    }
                }
                // The failing entry is somewhere in the page.
                Err(_) if limit > 1 => limit = 1,
                Err(e) => {
                    let seq = e.context("seq").and_then(|seq| seq.parse::<u64>().ok());
                    let Some(seq) = seq.filter(|seq| *seq > after) else { return Err(e) };
                    note_gap(&mut problems, &session, after, seq);
                    let reason = std::error::Error::source(&e).map_or_else(|| e.message().into(), ToString::to_string);
                    problems.push(Problem::Unreadable { session: session.clone(), seq, reason });
                    (after, limit) = (seq, PAGE);
                }
            }
        }
    }
    Ok(problems)
}

fn note_gap(problems: &mut Vec<Problem>, session: &str, after: u64, seq: u64) {
    if seq != after + 1 {
        problems.push(Problem::Gap { session: session.to_owned(), seq: after + 1 });
    }
}
