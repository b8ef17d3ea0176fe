//! Helpers of the tests of the SQLite and PostgreSQL journals.

use std::sync::Arc;

use agent_core::{
    Error, ErrorKind, Journal, Message, Result,
    journal::{Entry, EntryBody, JournalWriter, RunQuery, RunSummary, SessionInfo, SessionQuery, SessionSummary},
};
use agent_store::conformance::every_kind;

pub(crate) fn heard(text: &str) -> Entry {
    Entry::new("run-1".into(), 1_700_000_000_000, EntryBody::MessageAppended { message: Message::user(text) })
}

pub(crate) async fn append(writer: &dyn JournalWriter, texts: &[&str]) -> u64 {
    writer.append(texts.iter().copied().map(heard).collect()).await.expect("appends")
}

/// Returns the texts of a session, and checks every sequence number.
pub(crate) async fn texts(journal: &dyn Journal, session: &str) -> Vec<String> {
    let entries = journal.read(session, 0, usize::MAX).await.expect("reads");
    assert!(entries.iter().map(|e| e.seq).eq(1..=entries.len() as u64), "numbers without gaps");
    let text = |e: &Arc<Entry>| match &e.body {
        EntryBody::MessageAppended { message } => message.text(),
        other => panic!("not a message: {other:?}"),
    };
    entries.iter().map(text).collect()
}

pub(crate) fn kind<T>(result: Result<T>) -> Option<ErrorKind> {
    result.err().map(|e: Error| e.kind())
}

/// Writes a small and a large string, and an entry of every kind.
pub(crate) async fn write_everything(journal: &dyn Journal) {
    let writer = journal.open("s", "a").await.expect("is free");
    append(&*writer, &["1", &"x".repeat(10_000)]).await;
    writer.append(every_kind("s", "a")).await.expect("appends");
}

/// Writes entries of every kind by two agents to one session and by one to another.
pub(crate) async fn write_two_sessions(journal: &dyn Journal) {
    for (session, agent) in [("s", "b"), ("s", "a"), ("t", "a")] {
        let writer = journal.open(session, agent).await.expect("is free");
        writer.append(every_kind(session, agent)).await.expect("appends");
    }
}

/// Returns the metadata of those sessions.
pub(crate) async fn both_infos(journal: &dyn Journal) -> [SessionInfo; 2] {
    let info = async |session| journal.info(session).await.expect("reads").expect("it is there");
    let both = [info("s").await, info("t").await];
    assert!(both[0].agents.len() == 2 && both[0].title.is_some(), "{both:?}");
    both
}

/// Returns the summaries of all sessions and runs.
pub(crate) async fn summaries(journal: &dyn Journal) -> (Vec<SessionSummary>, Vec<RunSummary>) {
    let sessions = journal.recent(&SessionQuery::default()).await.expect("reads");
    let runs = journal.runs(&RunQuery::default()).await.expect("reads");
    assert!(sessions.len() > 1 && runs.len() > 1, "{sessions:?} {runs:?}");
    (sessions, runs)
}

/// `sleeper` lost its lease to `heir`: it can neither write nor release the lease.
pub(crate) async fn lost_to(
    heir: Arc<dyn JournalWriter>,
    sleeper: Arc<dyn JournalWriter>,
    ours: &dyn Journal,
    theirs: &dyn Journal,
) {
    let e = sleeper.append(vec![heard("too late")]).await.expect_err("lost");
    assert!(e.message().contains("the lease of agent 'a' in session 's' was lost to another process"), "{e}");
    assert_eq!(kind(sleeper.append(vec![heard("too late")]).await), Some(ErrorKind::Store));
    assert_eq!(append(&*heir, &["2"]).await, 2);
    assert_eq!(texts(ours, "s").await, ["1", "2"]);

    drop(sleeper); // releases a lease that it lost
    assert_eq!(kind(ours.open("s", "a").await), Some(ErrorKind::Busy));
    drop(heir);
    theirs.open("another", "a").await.expect("a turn of the thread, after which the lease is given back");
    assert_eq!(kind(ours.open("s", "a").await), None);
}
