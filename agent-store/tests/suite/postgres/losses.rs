//! Errors and durability while the database is unavailable.

use agent_core::{ErrorKind, Journal};
use agent_store::{Durability, PostgresJournal};
use futures::future::join_all;

use super::{append, heard, server::Place, texts};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn appends_that_wait_together_share_one_commit() {
    let Some(place) = Place::new() else { return };
    let journal = place.open().await;
    let writer = journal.open("s", "a").await.expect("is free");
    let before = journal.stats();
    let lock = place.client().await;
    lock.batch_execute("BEGIN; LOCK TABLE session").await.expect("locks");
    let acks: Vec<_> = (0..64).map(|n| writer.append(vec![heard(&n.to_string())])).collect();
    lock.batch_execute("COMMIT").await.expect("commits");
    let firsts: Vec<_> = join_all(acks).await.into_iter().map(|ack| ack.expect("appends")).collect();
    assert!(firsts.into_iter().eq(1..=64));
    let after = journal.stats();
    assert_eq!(after.jobs - before.jobs, 64);
    assert!(after.commits - before.commits <= 3, "{before:?} {after:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_queue_refuses_and_what_was_handed_over_before_is_kept() {
    let Some(place) = Place::new() else { return };
    let journal = place.builder().queue_bytes(2000).connect().await.expect("connects");
    let writer = journal.open("s", "a").await.expect("is free");
    let lock = place.client().await;
    lock.batch_execute("BEGIN; LOCK TABLE session").await.expect("locks");
    let acks: Vec<_> = (0..2).map(|_| writer.append(vec![heard(&"x".repeat(1500))])).collect();
    lock.batch_execute("COMMIT").await.expect("commits");
    let answers = join_all(acks).await;
    assert_eq!(answers[0].as_ref().ok(), Some(&1), "{answers:?}");
    assert!(answers[1].as_ref().is_err_and(|e| e.message().contains("cannot keep up")), "{answers:?}");
    assert!(writer.append(vec![heard("behind a hole")]).await.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_connection_is_made_again_and_loses_nothing_that_was_acknowledged() {
    let Some(place) = Place::new() else { return };
    let journal = place.open().await;
    for round in 0_u64..5 {
        let writer = journal.open("s", "a").await.expect("is free");
        let acked = texts(&journal, "s").await.len();
        append(&*writer, &[&acked.to_string()]).await;
        place.cut().await;
        // The append that notices the loss fails, and its writer with it; or the loss was noticed
        // before.
        let next = acked + 1;
        let kept = match writer.append(vec![heard(&next.to_string())]).await {
            Ok(_) => next + 1,
            Err(e) => {
                assert_eq!(e.kind(), ErrorKind::Store);
                assert!(writer.append(vec![heard("behind a hole")]).await.is_err());
                next
            }
        };
        drop(writer);
        // The lease may have been released on the lost connection: then it expires.
        place.execute("UPDATE lease SET expires = clock_timestamp() - interval '1 second'").await;
        let texts = texts(&journal, "s").await;
        assert!(texts.len() >= kept, "round {round}: {} of {kept}", texts.len());
        assert!(texts.iter().enumerate().all(|(at, text)| *text == at.to_string()), "{texts:?}");
    }
}

#[tokio::test]
async fn a_full_disk_is_a_clear_error_and_loses_nothing() {
    let Some(place) = Place::new() else { return };
    let journal = place.open().await;
    let writer = journal.open("s", "a").await.expect("is free");
    append(&*writer, &["1"]).await;
    // Simulates the server's error for a full disk.
    let full = "CREATE FUNCTION no_room() RETURNS trigger LANGUAGE plpgsql AS
                $$ BEGIN RAISE EXCEPTION 'No space left on device' USING ERRCODE = 'disk_full'; END $$;
                CREATE TRIGGER no_room BEFORE INSERT ON entry FOR EACH ROW EXECUTE FUNCTION no_room()";
    place.execute(full).await;
    let e = writer.append(vec![heard("2"), heard("3")]).await.expect_err("no room");
    assert!(e.kind() == ErrorKind::Store && e.message().contains("the database's disk is full: make room"), "{e}");
    assert!(writer.append(vec![heard("behind a hole")]).await.is_err(), "its writer is of no use any more");
    assert_eq!(texts(&journal, "s").await, ["1"]);
    place.execute("DROP TRIGGER no_room ON entry").await;
    drop(writer);
    let again = journal.open("s", "a").await.expect("is free");
    assert_eq!(append(&*again, &["2", "3"]).await, 2);
    assert_eq!(texts(&journal, "s").await, ["1", "2", "3"]);
}

#[tokio::test]
async fn a_read_only_database_is_called_that_and_can_be_read() {
    let Some(place) = Place::new() else { return };
    let journal = place.open().await;
    let writer = journal.open("s", "a").await.expect("is free");
    append(&*writer, &["1"]).await;
    drop((writer, journal));
    let place = Place { url: format!("{} options='-c default_transaction_read_only=on'", place.url), ..place };
    let journal = place.open().await;
    let e = journal.open("s", "b").await.err().expect("read-only");
    assert!(e.message().contains("the database is read-only: connect to the primary"), "{e}");
    assert_eq!(texts(&journal, "s").await, ["1"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn sixteen_writers_through_four_journals_lose_nothing() {
    let Some(place) = Place::new() else { return };
    let journals = join_all((0..4).map(|_| place.open())).await;
    let tasks = (0..16_usize).map(|w| {
        let journal = journals[w % 4].clone();
        tokio::spawn(async move {
            let writer = journal.open(&format!("s{}", w % 3), &format!("agent-{w}")).await.expect("is free");
            for n in 0..20 {
                append(&*writer, &[&format!("{w}.{n}.a"), &format!("{w}.{n}.b")]).await;
            }
        })
    });
    join_all(tasks).await.into_iter().for_each(|task| task.expect("the task ends"));
    let mut all = Vec::new();
    for session in ["s0", "s1", "s2"] {
        all.extend(texts(&journals[0], session).await);
    }
    assert!(all.chunks(2).all(|pair| pair[0].replace('a', "b") == pair[1]), "batches are in one piece");
    all.sort();
    all.dedup();
    assert_eq!(all.len(), 16 * 20 * 2);
}

#[tokio::test]
async fn dropping_the_last_handle_writes_what_was_handed_over() {
    let Some(place) = Place::new() else { return };
    let journal = place.builder().durability(Durability::Async).connect().await.expect("connects");
    let writer = journal.open("s", "a").await.expect("is free");
    for n in 0..100 {
        drop(writer.append(vec![heard(&n.to_string())]));
    }
    drop(journal);
    drop(writer);
    assert_eq!(texts(&place.open().await, "s").await.len(), 100);
    assert_eq!(place.count("SELECT count(*) FROM lease").await, 0, "an orderly end gives leases back");
}

#[tokio::test]
async fn large_strings_are_kept_once_and_go_with_the_last_entry_that_has_them() {
    let Some(place) = Place::new() else { return };
    let journal = place.open().await;
    let large = "x".repeat(100_000);
    for session in ["s", "t"] {
        let writer = journal.open(session, "a").await.expect("is free");
        append(&*writer, &[&large, &large]).await;
    }
    assert_eq!(place.count("SELECT count(*) FROM blob").await, 1);
    assert_eq!(place.count("SELECT count(*) FROM part").await, 4);
    assert!(journal.delete("s").await.expect("deletes"));
    assert_eq!(texts(&journal, "t").await, [&*large, &*large]);
    assert!(journal.delete("t").await.expect("deletes"));
    assert_eq!(place.count("SELECT count(*) FROM blob").await, 0);
}

#[tokio::test]
async fn what_cannot_be_connected_to_says_what_to_do_and_no_password() {
    let e = PostgresJournal::connect("postgres://me:secret@:bad").await.expect_err("no URL");
    assert_eq!(e.kind(), ErrorKind::Config);
    assert!(!format!("{e:?} {e}").contains("secret"), "{e:?}");
    let builder = PostgresJournal::builder("postgres://me:secret@localhost/x");
    assert!(!format!("{builder:?}").contains("secret"));
    let e = PostgresJournal::connect("host=/nowhere user=me password=secret").await.expect_err("no server");
    assert!(e.message().contains("the database cannot be reached: check that it is up"), "{e}");
    assert!(!format!("{e:?} {e}").contains("secret"), "{e:?}");

    let Some(place) = Place::new() else { return };
    let e = PostgresJournal::connect(&place.url.replace("dbname=postgres", "dbname=none")).await.expect_err("none");
    assert!(e.message().contains("unknown database"), "{e}");
    let e = PostgresJournal::connect(&place.url.replace("user=tests", "user=nobody")).await.expect_err("unknown user");
    assert!(e.message().contains("check the user and the password"), "{e}");
}

#[tokio::test]
async fn a_journal_of_a_newer_release_is_refused() {
    let Some(place) = Place::new() else { return };
    drop(place.open().await);
    place.execute("UPDATE format SET version = 99").await;
    let e = place.builder().connect().await.expect_err("newer");
    assert!(e.message().contains("format 99 and this release knows formats up to 6: use the newer release"), "{e}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_may_open_a_new_schema_at_once() {
    let Some(place) = Place::new() else { return };
    let opened = join_all((0..8).map(|_| place.builder().connect())).await;
    assert!(opened.iter().all(Result::is_ok), "{opened:?}");
}
