//! Operations on whole journals: transfer, integrity check and retention.

use std::{
    sync::Arc,
    time::{Duration, UNIX_EPOCH},
};

use agent_core::{
    Journal, MemoryJournal, Message,
    journal::{Entry, EntryBody},
};
use futures::{TryStreamExt, stream};

use super::{
    append, open, read_all,
    sample::{every_kind, heard},
};
use crate::{Retention, check, export, import};

async fn lines(journal: &dyn Journal) -> Vec<String> {
    let sessions = journal.sessions().await.expect("lists");
    export(journal, sessions).try_collect().await.expect("exports")
}

/// Export and import yield the same entries, there and back, without loss.
pub async fn a_journal_moves_to_another_and_back_and_is_whole(journal: Arc<dyn Journal>) {
    for session in ["s", "t\n\"odd\""] {
        let writer = open(&*journal, session, "a").await;
        for _ in 0..30 {
            append(&*writer, every_kind(session, "a")).await;
        }
        append(&*writer, vec![heard("r", "x".repeat(50_000))]).await;
    }
    let (there, before) = (MemoryJournal::default(), lines(&*journal).await);
    let moved = import(&there, stream::iter(before.iter().cloned().map(Ok))).await.expect("imports");
    assert_eq!(moved, before.len() as u64);
    for session in journal.sessions().await.expect("lists") {
        assert_eq!(read_all(&there, &session).await, read_all(&*journal, &session).await);
        assert!(journal.delete(&session).await.expect("deletes"));
    }
    assert!(lines(&*journal).await.is_empty());
    import(&*journal, stream::iter(lines(&there).await.into_iter().map(Ok))).await.expect("imports");
    assert_eq!(lines(&*journal).await, before);
    assert_eq!(check(&*journal).await.expect("checks"), []);
}

/// Retention deletes sessions by their newest entry, except those with an active writer.
pub async fn sessions_that_are_too_old_go_and_one_in_use_stays(journal: Arc<dyn Journal>) {
    const DAY: u64 = 24 * 60 * 60 * 1000;
    let at = |day: u64| Entry::new("r".into(), day * DAY, EntryBody::MessageAppended { message: Message::user("x") });
    for (session, day) in [("new", 99), ("old", 10), ("used", 10), ("other/old", 10)] {
        append(&*open(&*journal, session, "a").await, vec![at(1), at(day)]).await;
    }
    let used = open(&*journal, "used", "a").await;
    let (now, month) = (UNIX_EPOCH + Duration::from_millis(100 * DAY), Duration::from_millis(30 * DAY));
    let old = Retention::default().older_than(month);
    let deleted = old.clone().prefix("o").apply(&*journal, now).await.expect("applies");
    assert_eq!(deleted, ["old", "other/old"]);
    assert!(old.apply(&*journal, now).await.expect("applies").is_empty(), "a session in use is skipped");
    drop(used);
    assert_eq!(old.apply(&*journal, now).await.expect("applies"), ["used"]);
    assert_eq!(journal.sessions().await.expect("lists"), ["new"]);
    assert_eq!(read_all(&*journal, "new").await.len(), 2);
}
