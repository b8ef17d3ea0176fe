//! Retention rules for sessions.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use agent_core::{ErrorKind, Journal, Result};

/// Retention rules: deletes all sessions that match, except those with an active writer. Deletes
/// nothing without a rule.
///
/// ```
/// use std::time::{Duration, SystemTime};
///
/// use agent_core::MemoryJournal;
/// use agent_store::Retention;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), agent_core::Error> {
/// let journal = MemoryJournal::default();
/// let month = Duration::from_secs(30 * 24 * 60 * 60);
/// let deleted = Retention::default().prefix("draft/").older_than(month).apply(&journal, SystemTime::now()).await?;
/// assert!(deleted.is_empty());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct Retention {
    prefix: String,
    age: Option<Duration>,
    most: Option<usize>,
}

impl Retention {
    /// Restricts the rules to sessions whose names begin with `prefix`. Default: all sessions.
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// Deletes sessions whose newest entry is older than `age`.
    pub fn older_than(mut self, age: Duration) -> Self {
        self.age = Some(age);
        self
    }

    /// Keeps at most `most` sessions: those with the newest entries.
    pub fn at_most(mut self, most: usize) -> Self {
        self.most = Some(most);
        self
    }

    /// Deletes the matching sessions and returns their names, sorted. The freed space is reused; a
    /// store's `vacuum` returns it to the file system.
    ///
    /// # Errors
    /// The errors of the journal, except [`ErrorKind::Busy`]: sessions in use are skipped.
    pub async fn apply(&self, journal: &dyn Journal, now: SystemTime) -> Result<Vec<String>> {
        let mut sessions = Vec::new();
        for session in journal.sessions().await?.into_iter().filter(|name| name.starts_with(&self.prefix)) {
            let newest = journal.newest(&session).await?;
            sessions.push((newest.map_or(0, |entry| entry.time), session));
        }
        sessions.sort_by(|a, b| b.cmp(a));
        let since = |age| now.checked_sub(age).and_then(|since| since.duration_since(UNIX_EPOCH).ok());
        let oldest = self.age.and_then(since).map_or(0, |since| since.as_millis());
        let beyond = self.most.unwrap_or(usize::MAX);
        let old =
            sessions.into_iter().enumerate().filter(|(at, (time, _))| *at >= beyond || u128::from(*time) < oldest);
        let mut deleted = Vec::new();
        for (_, (_, session)) in old {
            match journal.delete(&session).await {
                Ok(true) => deleted.push(session),
                Ok(false) => {}
                Err(e) if e.kind() == ErrorKind::Busy => {}
                Err(e) => return Err(e),
            }
        }
        deleted.sort();
        Ok(deleted)
    }
}

#[cfg(test)]
mod tests {
    use agent_core::{
        MemoryJournal, Message,
        journal::{Entry, EntryBody},
    };

    use super::*;

    const DAY: u64 = 24 * 60 * 60 * 1000;

    /// Returns a journal of sessions, each with a name and the day of its newest entry.
    async fn journal(sessions: &[(&str, u64)]) -> MemoryJournal {
        let journal = MemoryJournal::default();
        for (session, day) in sessions {
            let entry = |time| Entry::new("r".into(), time, EntryBody::MessageAppended { message: Message::user("x") });
            let writer = journal.open_now(session, "a").expect("is free");
            writer.append(vec![entry(0), entry(day * DAY)]).await.expect("appends");
        }
        journal
    }

    #[tokio::test]
    async fn each_rule_deletes_what_it_names_and_nothing_else() {
        let now = UNIX_EPOCH + Duration::from_millis(100 * DAY);
        let days = |days| Duration::from_millis(days * DAY);
        for (retention, deleted) in [
            (Retention::default(), &[][..]),
            (Retention::default().older_than(days(20)), &["a", "b/1"]),
            (Retention::default().older_than(days(20)).prefix("b/"), &["b/1"]),
            (Retention::default().at_most(1), &["a", "b/1", "b/2"]),
            (Retention::default().at_most(1).prefix("b/"), &["b/1"]),
            (Retention::default().at_most(3).older_than(days(20)), &["a", "b/1"]),
        ] {
            let journal = journal(&[("a", 10), ("b/1", 20), ("b/2", 90), ("c", 95)]).await;
            assert_eq!(retention.apply(&journal, now).await.expect("applies"), deleted, "{retention:?}");
            assert_eq!(journal.sessions().await.expect("lists").len(), 4 - deleted.len());
        }
    }

    #[tokio::test]
    async fn a_session_in_use_is_kept() {
        let journal = journal(&[("a", 1), ("b", 2)]).await;
        let _writer = journal.open_now("a", "x").expect("is free");
        let deleted = Retention::default().at_most(0).apply(&journal, SystemTime::now()).await;
        assert_eq!(deleted.expect("applies"), ["b"]);
    }
}
