//! Integrity checks and repairs.

use std::time::Duration;

use agent_core::{Journal, journal::RunQuery};
use agent_store::Problem;

use super::{
    Place, append,
    common::{both_infos, summaries, write_everything, write_two_sessions},
};

#[tokio::test]
async fn a_whole_journal_has_no_problems() {
    let Some(place) = Place::new() else { return };
    let journal = place.open().await;
    write_everything(&journal).await;
    assert_eq!(journal.check().await.expect("checks"), []);
    assert_eq!(journal.repair().await.expect("repairs"), []);
    journal.vacuum().await.expect("vacuums");
}

#[tokio::test]
async fn tables_of_an_older_release_are_brought_up_to_date_with_what_is_known_of_their_sessions() {
    let Some(place) = Place::new() else { return };
    let journal = place.open().await;
    write_two_sessions(&journal).await;
    let before = both_infos(&journal).await;
    let known = summaries(&journal).await;
    drop(journal);
    place
        .execute(
            "ALTER TABLE session DROP created, DROP updated, DROP runs, DROP title, DROP agents, DROP anchor,
                 DROP projected, DROP active, DROP space, DROP metadata;
             DROP TABLE label; DROP TABLE run; DROP TABLE question;
             DROP INDEX run_started;
             UPDATE format SET version = 1",
        )
        .await;
    let journal = place.open().await;
    assert_eq!(summaries(&journal).await, known, "rebuilt from the entries");
    assert_eq!(both_infos(&journal).await, before);
    // An earlier release that still runs writes no summaries.
    place.execute("UPDATE session SET projected = 0; DELETE FROM run; DELETE FROM question").await;
    assert_eq!(place.open().await.runs(&RunQuery::default()).await.expect("reads"), known.1);
    place.execute("UPDATE run SET started = 0").await;
    journal.rebuild().await.expect("rebuilds");
    assert_eq!(journal.runs(&RunQuery::default()).await.expect("reads"), known.1);
}

#[tokio::test]
async fn a_process_that_must_not_migrate_leaves_older_tables_alone_and_says_what_to_do() {
    let Some(place) = Place::new() else { return };
    let forbidden = Place { url: format!("{} migrate=false", place.url), schema: place.schema.clone() };
    let missing = forbidden.builder().connect().await.expect_err("there are no tables");
    assert!(
        missing.message().contains("have format 0") && missing.message().contains("agent store migrate"),
        "{missing}"
    );
    drop(place.open().await);
    let journal = forbidden.builder().connect().await.expect("the tables are up to date");
    append(&*journal.open("s", "a").await.expect("is free"), &["1"]).await;
    drop(journal);
    place.execute("UPDATE format SET version = version - 1; DROP TABLE label").await;
    let older = forbidden.builder().connect().await.expect_err("is older");
    assert!(older.message().contains("agent store migrate"), "{older}");
    assert_eq!(
        place.count("SELECT count(*) FROM pg_tables WHERE tablename = 'label' AND schemaname = current_schema").await,
        0
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_migration_does_not_wait_for_locks_for_long() {
    let Some(place) = Place::new() else { return };
    drop(place.open().await);
    let undo = "ALTER TABLE session DROP projected, DROP active, DROP space, DROP metadata;
                DROP TABLE label; DROP TABLE run; DROP TABLE question; UPDATE format SET version = version - 1";
    place.execute(undo).await;
    let other = place.client().await;
    other.batch_execute("BEGIN; SELECT FROM session").await.expect("locks");
    let refused = place.builder().connect().await.expect_err("the table is locked");
    assert!(refused.is_retryable() && refused.message().contains("could not be acquired in time"), "{refused}");
    other.batch_execute("COMMIT").await.expect("makes way");
    drop(place.open().await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leases_are_renewed_while_an_append_waits_for_a_lock() {
    let Some(place) = Place::new() else { return };
    let ttl = Duration::from_secs(4);
    let journal = place.builder().lease_ttl(ttl).connect().await.expect("connects");
    let (held, waits) =
        (journal.open("held", "a").await.expect("is free"), journal.open("waits", "a").await.expect("is free"));
    append(&*waits, &["1"]).await;
    let other = place.client().await;
    other.batch_execute("BEGIN; SELECT FROM session WHERE name = 'waits' FOR UPDATE").await.expect("locks");
    let appending = tokio::spawn(async move { waits.append(vec![super::heard("2")]).await });
    let renewed = "SELECT count(*) FROM lease WHERE session = 'held' AND expires > clock_timestamp()";
    // The server's clock cannot be paused.
    let until = std::time::Instant::now() + ttl + ttl / 2;
    while std::time::Instant::now() < until {
        assert_eq!(place.count(renewed).await, 1, "the lease expired");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    other.batch_execute("COMMIT").await.expect("makes way");
    drop(appending.await.expect("ends"));
    append(&*held, &["1"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_that_are_deleted_at_once_leave_no_content_that_they_shared() {
    let Some(place) = Place::new() else { return };
    let journal = place.open().await;
    for session in ["one", "two"] {
        append(&*journal.open(session, "a").await.expect("is free"), &[&"shared ".repeat(2_000)]).await;
    }
    assert_eq!(place.count("SELECT count(*) FROM blob").await, 1);
    let other = place.client().await;
    other.batch_execute("BEGIN; DELETE FROM session WHERE name = 'one'").await.expect("deletes");
    let deleting = tokio::spawn({
        let journal = journal.clone();
        async move { journal.delete("two").await }
    });
    // Until it has deleted, or waits for the other one.
    while !deleting.is_finished() && place.count("SELECT count(*) FROM pg_locks WHERE NOT granted").await == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    other.batch_execute("COMMIT").await.expect("commits");
    assert!(deleting.await.expect("ends").expect("deletes"));
    assert_eq!(place.count("SELECT count(*) FROM blob").await, 0);
}

#[tokio::test]
async fn every_kind_of_damage_is_found_and_not_touched_by_a_repair() {
    let Some(place) = Place::new() else { return };
    let journal = place.open().await;
    for session in ["gap", "end", "unreadable", "blob"] {
        let writer = journal.open(session, "a").await.expect("is free");
        append(&*writer, &["1", "2", "3", &format!("{session} {}", "x".repeat(10_000))]).await;
    }
    let of = |session: &str| format!("session = (SELECT id FROM session WHERE name = '{session}')");
    place.execute(&format!("DELETE FROM entry WHERE {} AND seq = 2", of("gap"))).await;
    place
        .execute(&format!("UPDATE entry SET body = '{{\"undone\":{{}}}}' WHERE {} AND seq = 3", of("unreadable")))
        .await;
    let gap = |session: &str, seq| Problem::Gap { session: session.into(), seq };
    let found = journal.check().await.expect("checks");
    assert_eq!((found.len(), &found[0]), (2, &gap("gap", 2)), "{found:?}");
    assert!(matches!(&found[1], Problem::Unreadable { session, seq: 3, .. } if session == "unreadable"), "{found:?}");

    place.execute(&format!("DELETE FROM entry WHERE {} AND seq >= 3", of("end"))).await;
    place.execute("UPDATE blob SET content = 'other' WHERE content LIKE 'blob%'").await;
    let found = journal.check().await.expect("checks");
    assert!(matches!(&found[..], [Problem::WrongBlob { .. }, cut] if *cut == gap("end", 3)), "{found:?}");
    assert_eq!(journal.repair().await.expect("repairs"), [], "nothing that could lose something is touched");
}

#[tokio::test]
async fn what_dead_writers_left_is_found_and_removed() {
    let Some(place) = Place::new() else { return };
    let journal = place.open().await;
    let _alive = journal.open("s", "alive").await.expect("is free");
    place
        .execute(
            "INSERT INTO lease (session, agent, holder, expires) VALUES ('s', 'dead', 'h', now() - interval '1 hour');
             INSERT INTO blob VALUES (sha256('x'), 'x')",
        )
        .await;
    let found = journal.check().await.expect("checks");
    let dead = Problem::ExpiredLease { session: "s".into(), agent: "dead".into() };
    assert!(matches!(&found[..], [Problem::UnusedBlob { .. }, lease] if *lease == dead), "{found:?}");
    assert_eq!(journal.repair().await.expect("repairs"), found);
    assert_eq!(journal.check().await.expect("checks"), []);
    let other = place.builder().lease_ttl(Duration::from_secs(5)).connect().await.expect("connects");
    assert!(other.open("s", "alive").await.is_err(), "the living keep theirs");
}
