//! A single writer per session and agent, with processes that die or are suspended.

use agent_core::{ErrorKind, Journal};
use futures::FutureExt;

use super::{append, common::lost_to, heard, kind, server::Place};

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
    // The heartbeat uses the server's clock, which cannot be paused: it comes within a third of a
    // second.
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
async fn a_writer_whose_lease_ran_out_has_it_again_unless_another_process_took_it_over() {
    let Some(place) = Place::new() else { return };
    let ttl = std::time::Duration::from_secs(3);
    let journal = place.builder().lease_ttl(ttl).connect().await.expect("connects");
    let [ours, others] = ["s", "t"].map(|session| journal.open(session, "a"));
    let (ours, others) = (ours.await.expect("is free"), others.await.expect("is free"));
    assert_eq!(ours.verify_lease().now_or_never().map(kind), Some(None), "it is known, and nobody is asked");
    let client = place.client().await;
    client.batch_execute("BEGIN; LOCK TABLE lease").await.expect("locks");
    tokio::time::sleep(ttl).await; // nothing is renewed meanwhile: the server's clock cannot be paused
    let taken = "UPDATE lease SET epoch = DEFAULT, holder = 'heir' WHERE session = 't'; COMMIT";
    client.batch_execute(taken).await.expect("takes over");
    ours.verify_lease().await.expect("nobody took it over");
    let e = others.verify_lease().await.expect_err("it is the heir's");
    assert!(e.message().contains("the lease of agent 'a' in session 't' was lost to another process"), "{e}");
}
