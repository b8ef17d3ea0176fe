//! Integrity checks, repairs, space, and transfer to another journal.

use std::fs;

use agent_core::{
    ErrorKind, Journal, MemoryJournal,
    journal::{Entry, EntryBody},
};
use agent_store::{Problem, conformance::every_kind, export, import};
use futures::{TryStreamExt, stream};
use serde_json::json;

use super::{FakeClock, Place, append, common::write_everything, heard};

#[tokio::test]
async fn a_whole_journal_has_no_problems() {
    let place = Place::new();
    let journal = place.open();
    write_everything(&journal).await;
    assert_eq!(journal.check().await.expect("checks"), []);
    assert_eq!(journal.repair().await.expect("repairs"), []);
}

#[tokio::test]
async fn every_kind_of_damage_is_found_and_named() {
    let place = Place::new();
    let journal = place.open();
    for session in ["gap", "end", "unreadable", "blob"] {
        let writer = journal.open(session, "a").await.expect("is free");
        append(&*writer, &["1", "2", "3", &format!("{session} {}", "x".repeat(10_000))]).await;
    }
    let of = |session: &str| format!("session = (SELECT id FROM session WHERE name = '{session}')");
    let damage = format!(
        "DELETE FROM entry WHERE {} AND seq = 2; DELETE FROM entry WHERE {} AND seq >= 3;
         UPDATE entry SET body = '{{\"undone\":{{}}}}' WHERE {} AND seq = 3;
         UPDATE blob SET content = 'other' WHERE content LIKE 'blob%'",
        of("gap"),
        of("end"),
        of("unreadable")
    );
    place.sqlite().execute_batch(&damage).expect("damages");
    let found = journal.check().await.expect("checks");
    let gap = |session: &str, seq| Problem::Gap { session: session.into(), seq };
    assert!(matches!(&found[..1], [Problem::WrongBlob { .. }]), "{found:?}");
    assert!(found.contains(&gap("end", 3)), "{found:?}");
    assert!(!found.iter().any(Problem::is_repairable));
    assert_eq!(journal.repair().await.expect("repairs"), [], "nothing that could lose something is touched");

    let found = agent_store::check(&journal).await.expect("checks");
    assert_eq!(found[0], gap("gap", 2));
    assert!(
        matches!(&found[1], Problem::Unreadable { session, seq: 3, reason }
        if session == "unreadable" && reason.contains("before_run")),
        "{found:?}"
    );
    assert_eq!(found.len(), 2);
}

#[tokio::test]
async fn what_dead_writers_left_is_found_and_removed() {
    let (place, clock) = (Place::new(), FakeClock::new());
    let journal = clock.open(&place);
    let kept = journal.open("kept", "a").await.expect("is free");
    place
        .sqlite()
        .execute_batch(
            "INSERT INTO lease (session, agent, holder, expires) VALUES ('s', 'dead', 'x', 5);
             INSERT INTO blob (hash, content) VALUES (x'2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae', 'foo')",
        )
        .expect("inserts");
    let found = journal.check().await.expect("checks");
    assert!(
        matches!(&found[..], [Problem::UnusedBlob { hash }, Problem::ExpiredLease { agent, .. }]
        if hash.starts_with("2c26b46b") && agent == "dead"),
        "{found:?}"
    );
    assert!(found.iter().all(Problem::is_repairable));
    assert_eq!(journal.repair().await.expect("repairs"), found, "it says what it did");
    assert_eq!(journal.check().await.expect("checks"), []);
    append(&*kept, &["the living are left alone"]).await;
}

#[tokio::test]
async fn the_space_of_deleted_sessions_is_given_back() {
    let place = Place::new();
    let journal = place.open();
    for session in ["s", "t"] {
        let writer = journal.open(session, "a").await.expect("is free");
        for n in 0..500 {
            append(&*writer, &[&format!("{session}{n} {}", "x".repeat(2000))]).await;
        }
    }
    let size = || fs::metadata(place.path()).expect("a file").len();
    journal.vacuum().await.expect("vacuums");
    let full = size();
    assert!(journal.delete("s").await.expect("deletes"));
    journal.vacuum().await.expect("vacuums");
    assert!(size() < full * 6 / 10, "{} of {full}", size());
    assert_eq!(journal.read("t", 0, usize::MAX).await.expect("reads").len(), 500);
}

#[tokio::test]
async fn an_exported_session_is_the_same_when_it_is_imported() {
    let (one, two) = (Place::new(), Place::new());
    let (from, to, memory) = (one.open(), two.open(), MemoryJournal::default());
    for session in ["s", "t\n\"odd\""] {
        let writer = from.open(session, "a").await.expect("is free");
        for _ in 0..30 {
            writer.append(every_kind(session, "a")).await.expect("appends");
        }
        let mut newer = Entry::new("r".into(), u64::MAX, EntryBody::Unknown(json!({"of": {"another": "release"}})));
        newer.version = 900;
        writer.append(vec![newer, heard(&"x".repeat(10_000))]).await.expect("appends");
    }
    let sessions = from.sessions().await.expect("lists");
    let lines: Vec<String> = export(&from, sessions.clone()).try_collect().await.expect("exports");
    assert!(lines.iter().all(|line| !line.contains('\n')));
    for journal in [&to as &dyn Journal, &memory] {
        let count = import(journal, stream::iter(lines.iter().cloned().map(Ok))).await.expect("imports");
        assert_eq!(count, lines.len() as u64);
        for session in &sessions {
            let (ours, theirs) = (journal.read(session, 0, usize::MAX).await, from.read(session, 0, usize::MAX).await);
            assert_eq!(ours.expect("reads"), theirs.expect("reads"));
        }
    }
    // A second import overwrites nothing.
    let e = import(&to, stream::iter(lines.into_iter().map(Ok))).await.expect_err("is there already");
    assert!(e.message().contains("already has entries"), "{e}");
    assert_eq!((e.kind(), e.context("line")), (ErrorKind::Store, Some("1")));
}

#[tokio::test]
async fn a_line_that_is_damaged_or_missing_names_its_place_and_keeps_what_came_before() {
    let from = MemoryJournal::default();
    let writer = from.open("s", "a").await.expect("is free");
    writer.append((0..5).map(|n| heard(&n.to_string())).collect()).await.expect("appends");
    let lines: Vec<String> = export(&from, ["s".to_owned()]).try_collect().await.expect("exports");
    for (change, says) in [("cut", "not belong to an exported journal"), ("gone", "entry 4 of session 's' is missing")]
    {
        let mut lines = lines.clone();
        match change {
            "cut" => lines[3].truncate(20),
            _ => drop(lines.remove(3)),
        }
        let to = MemoryJournal::default();
        let e = import(&to, stream::iter(lines.into_iter().map(Ok))).await.expect_err("refused");
        assert!(e.message().contains(says), "{e}");
        assert_eq!(e.context("line"), Some("4"));
        assert_eq!(to.read("s", 0, 10).await.expect("reads").len(), 3);
    }
}
