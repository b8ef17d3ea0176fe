//! Leases of writers, and the list of sessions.

use std::{sync::Arc, time::Duration};

use agent_core::{ErrorKind, Journal};

use super::{
    append, open, read_all,
    sample::{heard, text},
};

async fn is_busy(journal: &dyn Journal, session: &str, agent: &str) -> bool {
    match journal.open(session, agent).await {
        Ok(_) => false,
        Err(e) => {
            assert_eq!(e.kind(), ErrorKind::Busy, "{e}");
            true
        }
    }
}

/// A second writer for the same session and agent is rejected; one for another agent or session is
/// not.
pub async fn a_session_and_agent_have_one_writer(journal: Arc<dyn Journal>) {
    let _held = open(&*journal, "s", "a").await;
    assert!(is_busy(&*journal, "s", "a").await);
    assert!(!is_busy(&*journal, "s", "b").await);
    assert!(!is_busy(&*journal, "t", "a").await);
}

/// Two agents write to one log.
pub async fn agents_of_one_session_share_its_numbers(journal: Arc<dyn Journal>) {
    let (a, b) = (open(&*journal, "s", "a").await, open(&*journal, "s", "b").await);
    assert_eq!(append(&*a, vec![heard("ra", "1"), heard("ra", "2")]).await, 1);
    assert_eq!(append(&*b, vec![heard("rb", "3")]).await, 3);
    assert_eq!(append(&*a, vec![heard("ra", "4")]).await, 4);
    let runs: Vec<_> = read_all(&*journal, "s").await.iter().map(|e| e.run.to_string()).collect();
    assert_eq!(runs, ["ra", "ra", "rb", "ra"]);
}

/// Repeatedly, before and after an append.
pub async fn a_writer_proves_that_the_session_is_its_own(journal: Arc<dyn Journal>) {
    let writer = open(&*journal, "s", "a").await;
    for n in 1..=3 {
        writer.verify_lease().await.expect("it is its own");
        assert_eq!(append(&*writer, vec![heard("r", "x")]).await, n);
    }
}

/// The lease is released when the last reference to the writer is dropped, and not before.
pub async fn a_writer_that_is_dropped_frees_its_place(journal: Arc<dyn Journal>) {
    for _ in 0..3 {
        let writer = open(&*journal, "s", "a").await;
        let same = writer.clone();
        drop(writer);
        assert!(is_busy(&*journal, "s", "a").await);
        drop(same.append(vec![heard("r", "x")]));
        drop(same);
    }
    assert!(!is_busy(&*journal, "s", "a").await);
    assert_eq!(read_all(&*journal, "s").await.len(), 3, "entries enqueued before the drop are stored");
}

/// Deletion is rejected while a writer is active.
pub async fn a_session_in_use_is_not_deleted(journal: Arc<dyn Journal>) {
    let writer = open(&*journal, "s", "a").await;
    append(&*writer, vec![heard("r", "x")]).await;
    assert_eq!(journal.delete("s").await.expect_err("in use").kind(), ErrorKind::Busy);
    assert_eq!(read_all(&*journal, "s").await.len(), 1);
    drop(writer);
    assert!(journal.delete("s").await.expect("deletes"));
}

/// Nothing of a deleted session remains, and other sessions keep their content.
pub async fn a_deleted_session_is_gone_and_can_begin_again(journal: Arc<dyn Journal>) {
    for session in ["s", "t"] {
        append(&*open(&*journal, session, "a").await, vec![heard("r", "x"), heard("r", "y")]).await;
    }
    assert!(journal.delete("s").await.expect("deletes"));
    assert!(!journal.delete("s").await.expect("deletes"), "the session was already deleted");
    assert!(!journal.delete("never").await.expect("deletes"));
    assert!(read_all(&*journal, "s").await.is_empty());
    assert_eq!(journal.sessions().await.expect("lists"), ["t"]);
    assert_eq!(append(&*open(&*journal, "s", "a").await, vec![heard("r", "z")]).await, 1);
    assert_eq!((read_all(&*journal, "s").await.len(), read_all(&*journal, "t").await.len()), (1, 2));
}

/// The newest entry is the last one of the session itself.
pub async fn the_newest_entry_is_found(journal: Arc<dyn Journal>) {
    assert!(journal.newest("nobody").await.expect("reads").is_none());
    let (s, t) = (open(&*journal, "s", "a").await, open(&*journal, "t", "a").await);
    for end in [1, 500, 501, 999] {
        let after = read_all(&*journal, "s").await.len() as u64;
        append(&*s, (after + 1..=end).map(|n| heard("r", n.to_string())).collect()).await;
        append(&*t, vec![heard("r", "x"), heard("r", "y")]).await;
        let newest = journal.newest("s").await.expect("reads").expect("has some");
        assert_eq!((newest.seq, text(&newest)), (end, end.to_string()));
    }
}

/// For existing and new sessions, and only for the requested one; a cancelled waiter disturbs
/// nobody.
pub async fn who_waits_for_entries_hears_of_them_whoever_writes(journal: Arc<dyn Journal>) {
    let (s, t) = (open(&*journal, "s", "a").await, open(&*journal, "t", "a").await);
    append(&*s, vec![heard("r", "1")]).await;
    journal.news("s", 0).await.expect("a job is available");
    let gone = tokio::time::timeout(Duration::from_millis(1), journal.news("s", 1)).await;
    assert!(gone.is_err(), "there are no entries yet: {gone:?}");
    let (mut of_s, mut of_t) = (journal.news("s", 1), journal.news("t", 0));
    tokio::select! {
        biased;
        news = &mut of_t => panic!("no entry was written: {news:?}"),
        news = &mut of_s => panic!("no entry was written: {news:?}"),
        first = async { append(&*open(&*journal, "s", "b").await, vec![heard("r", "2")]).await } => assert_eq!(first, 2),
    }
    tokio::select! {
        biased;
        news = &mut of_t => panic!("the entry belongs to another session: {news:?}"),
        news = &mut of_s => news.expect("hears"),
    }
    append(&*t, vec![heard("r", "1")]).await;
    of_t.await.expect("hears");
}

/// By name, in byte order.
pub async fn sessions_are_listed_in_order(journal: Arc<dyn Journal>) {
    for session in ["b", "a", "é", "B", "a1", "10", "2"] {
        append(&*open(&*journal, session, "a").await, vec![heard("r", "x")]).await;
    }
    assert_eq!(journal.sessions().await.expect("lists"), ["10", "2", "B", "a", "a1", "b", "é"]);
}

/// By prefix, after a name, up to a limit; the prefix may contain any characters.
pub async fn sessions_are_listed_by_how_they_begin_and_in_pages(journal: Arc<dyn Journal>) {
    for session in ["a/1", "a/2", "a/3", "a", "ab/1", "A/1", "b%/1", "b_/1", "bé/1", "é/1", "\u{1f600}/1"] {
        append(&*open(&*journal, session, "a").await, vec![heard("r", "x")]).await;
    }
    let list = async |prefix: &str, after: &str, limit| journal.list(prefix, after, limit).await.expect("lists");
    assert_eq!(list("a/", "", 9).await, ["a/1", "a/2", "a/3"]);
    assert_eq!(list("a/", "", 2).await, ["a/1", "a/2"]);
    assert_eq!(list("a/", "a/2", 2).await, ["a/3"]);
    assert_eq!(list("a/", "b", 2).await, Vec::<String>::new());
    assert_eq!(list("b%", "", 9).await, ["b%/1"]);
    assert_eq!(list("b_", "", 9).await, ["b_/1"]);
    assert_eq!(list("bé", "a", 9).await, ["bé/1"]);
    assert_eq!(list("\u{1f600}", "", 9).await, ["\u{1f600}/1"]);
    assert_eq!(list("", "", 99).await, journal.sessions().await.expect("lists"));
    assert!(list("", "", 0).await.is_empty() && list("x", "", 9).await.is_empty());
}

/// Names of sessions, agents and runs are opaque.
pub async fn names_may_be_any_text(journal: Arc<dyn Journal>) {
    let names = ["", " ", "a/b\\c", "'; DROP TABLE entry; --", "%_*?", "日本 \u{1f600}", "line\nbreak", "nul\0in"];
    for name in names {
        append(&*open(&*journal, name, name).await, vec![heard(name, name)]).await;
    }
    for name in names {
        let entries = read_all(&*journal, name).await;
        assert_eq!(entries.iter().map(|e| &*e.run).collect::<Vec<_>>(), [name]);
        assert!(journal.delete(name).await.expect("deletes"));
    }
    assert!(journal.sessions().await.expect("lists").is_empty());
}
