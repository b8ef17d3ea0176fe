//! One writer for a session and agent, among processes that may die or sleep.

use agent_core::{ErrorKind, Journal};

use crate::{append, common::lost_to, heard, kind, server::Place};

const EXPIRE: &str = "UPDATE lease SET expires = clock_timestamp() - interval '1 second'";

#[tokio::test]
async fn an_expired_lease_is_taken_over_and_its_old_holder_writes_no_more() {
    let Some(place) = Place::new() else { return };
    let (ours, theirs) = (place.open().await, place.open().await);
    let sleeper = ours.open("s", "a").await.expect("is free");
    append(&*sleeper, &["1"]).await;
    assert_eq!(kind(theirs.open("s", "a").await), Some(ErrorKind::Busy));
    place.execute(EXPIRE).await;
    let heir = theirs.open("s", "a").await.expect("has expired");
    lost_to(heir, sleeper, &ours, &theirs).await;
}

#[tokio::test]
async fn a_large_string_of_a_writer_that_lost_its_lease_is_not_kept() {
    let Some(place) = Place::new() else { return };
    let (ours, theirs) = (place.open().await, place.open().await);
    let sleeper = ours.open("s", "a").await.expect("is free");
    place.execute(EXPIRE).await;
    let _heir = theirs.open("s", "a").await.expect("has expired");
    sleeper.append(vec![heard(&"x".repeat(10_000))]).await.expect_err("lost");
    assert_eq!(place.count("SELECT count(*) FROM blob").await, 0);
}

#[tokio::test]
async fn a_lease_is_renewed_while_its_holder_lives() {
    let Some(place) = Place::new() else { return };
    let journal = place.builder().lease_ttl(std::time::Duration::from_secs(1)).connect().await.expect("connects");
    let _writer = journal.open("s", "a").await.expect("is free");
    let client = place.client().await;
    let expires =
        async || -> String { client.query_one("SELECT expires::text FROM lease", &[]).await.expect("a lease").get(0) };
    let before = expires().await;
    // The heartbeat is on the server's clock, which cannot be paused: it comes within a third of a second.
    let renewed = async { while expires().await == before {} };
    tokio::time::timeout(std::time::Duration::from_secs(30), renewed).await.expect("renewed");
}

#[tokio::test]
async fn a_session_whose_holder_died_can_be_deleted_when_the_lease_has_expired() {
    let Some(place) = Place::new() else { return };
    let journal = place.open().await;
    let writer = journal.open("s", "a").await.expect("is free");
    append(&*writer, &["1"]).await;
    assert_eq!(kind(journal.delete("s").await), Some(ErrorKind::Busy));
    place.execute(EXPIRE).await;
    assert!(journal.delete("s").await.expect("deletes"));
    assert_eq!(kind(writer.append(vec![heard("too late")]).await), Some(ErrorKind::Store));
    assert!(journal.sessions().await.expect("lists").is_empty());
}

#[tokio::test]
async fn an_append_that_is_answered_when_the_lease_has_run_out_is_not_acknowledged() {
    let Some(place) = Place::new() else { return };
    let ttl = std::time::Duration::from_secs(1);
    let journal = place.builder().lease_ttl(ttl).connect().await.expect("connects");
    let writer = journal.open("s", "a").await.expect("is free");
    append(&*writer, &["1"]).await;
    let client = place.client().await;
    let expires =
        async || -> String { client.query_one("SELECT expires::text FROM lease", &[]).await.expect("a lease").get(0) };
    let before = expires().await;
    while expires().await == before {} // it is renewed now: the server's clock cannot be paused
    tokio::time::sleep(ttl / 5).await;
    client.batch_execute("BEGIN; LOCK TABLE entry").await.expect("locks");
    let (e, ()) = tokio::join!(async { writer.append(vec![heard("2")]).await.expect_err("others may write") }, async {
        tokio::time::sleep(ttl.mul_f64(0.9)).await;
        client.batch_execute("COMMIT").await.expect("unlocks");
    });
    assert_eq!(e.kind(), ErrorKind::Store);
}
