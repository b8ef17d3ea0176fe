//! A single writer per session and agent, with processes that die or are suspended.

use std::{fs, time::Duration};

use agent_core::{ErrorKind, Journal};
use futures::FutureExt;

use super::{FakeClock, Place, append, common::lost_to, kind, texts};

#[tokio::test]
async fn an_expired_lease_is_taken_over_and_its_old_holder_writes_no_more() {
    let (place, clock) = (Place::new(), FakeClock::new());
    let (ours, theirs) = (clock.open(&place), clock.open(&place));
    let sleeper = ours.open("s", "a").await.expect("is free");
    append(&*sleeper, &["1"]).await;
    clock.advance(FakeClock::TTL - Duration::from_millis(1));
    assert_eq!(kind(theirs.open("s", "a").await), Some(ErrorKind::Busy));
    clock.advance(Duration::from_millis(1));
    let heir = theirs.open("s", "a").await.expect("has expired");
    lost_to(heir, sleeper, &ours, &theirs).await;
}

#[tokio::test]
async fn a_lease_is_renewed_while_its_holder_lives() {
    let (place, clock) = (Place::new(), FakeClock::new());
    let (ours, theirs) = (clock.open(&place), clock.open(&place));
    let _writer = ours.open("s", "a").await.expect("is free");
    for _ in 0..4 {
        clock.advance(FakeClock::TTL / 2);
        ours.delete("nothing").await.expect("a turn of the thread");
    }
    assert_eq!(kind(theirs.open("s", "a").await), Some(ErrorKind::Busy));
    assert_eq!(kind(theirs.delete("s").await), Some(ErrorKind::Busy));
}

#[tokio::test]
async fn a_writer_that_slept_has_its_lease_again_unless_another_process_took_it_over() {
    let (place, clock) = (Place::new(), FakeClock::new());
    let (ours, theirs) = (clock.open(&place), clock.open(&place));
    let sleeper = ours.open("s", "a").await.expect("is free");
    assert_eq!(sleeper.verify_lease().now_or_never().map(kind), Some(None), "it is known, and nobody is asked");
    clock.advance(FakeClock::TTL);
    sleeper.verify_lease().await.expect("nobody took it over");
    assert_eq!(kind(theirs.open("s", "a").await), Some(ErrorKind::Busy), "it is renewed");
    clock.advance(FakeClock::TTL);
    let _heir = theirs.open("s", "a").await.expect("has expired");
    let e = sleeper.verify_lease().await.expect_err("it is the heir's");
    assert!(e.message().contains("the lease of agent 'a' in session 's' was lost to another process"), "{e}");
}

#[tokio::test]
async fn leases_that_are_renewed_prove_nothing_of_one_that_was_lost() {
    let (place, clock) = (Place::new(), FakeClock::new());
    let (ours, theirs) = (clock.open(&place), clock.open(&place));
    let sleeper = ours.open("s", "a").await.expect("is free");
    let other = ours.open("t", "a").await.expect("is free");
    clock.advance(FakeClock::TTL);
    let _heir = theirs.open("s", "a").await.expect("has expired");
    ours.delete("nothing").await.expect("a turn of the thread, which renews what is held");
    other.verify_lease().now_or_never().expect("it is known").expect("nobody took it over");
    assert_eq!(kind(sleeper.verify_lease().await), Some(ErrorKind::Store));
}

#[tokio::test]
async fn a_renewal_that_fails_once_is_made_up_for() {
    let (place, clock) = (Place::new(), FakeClock::new());
    let ttl = Duration::from_secs(1); // a third of it is the lock wait
    let (ours, theirs) = (clock.open_with(&place, ttl), clock.open_with(&place, ttl));
    let writer = ours.open("s", "a").await.expect("is free");
    let lock = place.locked();
    clock.advance(ttl / 2);
    let e = ours.delete("nothing").await.expect_err("locked");
    assert!(e.is_retryable() && e.message().contains("another program locks the journal"), "{e}");
    lock.execute_batch("COMMIT").expect("commits");
    ours.delete("nothing").await.expect("a turn of the thread");
    clock.advance(ttl * 2 / 3);
    assert_eq!(kind(theirs.open("s", "a").await), Some(ErrorKind::Busy));
    assert_eq!(append(&*writer, &["1"]).await, 1);
}

#[tokio::test]
async fn a_lease_that_could_not_be_given_back_expires() {
    let (place, clock) = (Place::new(), FakeClock::new());
    let (ours, theirs) = (clock.open(&place), clock.open(&place));
    let writer = ours.open("s", "a").await.expect("is free");
    let file = place.sqlite();
    let refuse = "CREATE TRIGGER refuse BEFORE DELETE ON lease BEGIN SELECT RAISE(FAIL, 'no'); END";
    file.execute_batch(refuse).expect("a trigger");
    drop(writer);
    ours.delete("nothing").await.expect("a turn of the thread");
    file.execute_batch("DROP TRIGGER refuse").expect("is there");
    assert_eq!(kind(theirs.open("s", "a").await), Some(ErrorKind::Busy));
    for _ in 0..2 {
        clock.advance(FakeClock::TTL / 2);
        ours.delete("nothing").await.expect("a turn of the thread, which renews what is held");
    }
    assert_eq!(kind(theirs.open("s", "a").await), None);
}

#[tokio::test]
async fn a_process_that_died_keeps_its_sessions_as_long_as_the_lease_and_no_longer() {
    let (alive, dead, clock) = (Place::new(), Place::new(), FakeClock::new());
    let journal = clock.open(&alive);
    let writer = journal.open("s", "a").await.expect("is free");
    append(&*writer, &["1", "2"]).await;
    // State after a kill: the files with a log that is not checkpointed into the database.
    for end in ["", "-wal"] {
        let file = format!("agent.db{end}");
        fs::copy(alive.0.path().join(&file), dead.0.path().join(&file)).expect("copies");
    }
    let journal = clock.open(&dead);
    assert_eq!(texts(&journal, "s").await, ["1", "2"]);
    assert_eq!(kind(journal.open("s", "a").await), Some(ErrorKind::Busy));
    assert_eq!(kind(journal.open("s", "b").await), None);
    clock.advance(FakeClock::TTL);
    let writer = journal.open("s", "a").await.expect("has expired");
    assert_eq!(append(&*writer, &["3"]).await, 3);
}

#[tokio::test]
async fn processes_that_append_to_one_session_in_turn_share_its_numbers() {
    let place = Place::new();
    let (ours, theirs) = (place.open(), place.open());
    let one = ours.open("s", "a").await.expect("is free");
    let other = theirs.open("s", "b").await.expect("is another agent's");
    for round in 0..3 {
        let first = 1 + round * 4;
        assert_eq!(append(&*one, &["x", "y"]).await, first);
        assert_eq!(append(&*one, &["z"]).await, first + 2);
        assert_eq!(append(&*other, &["t"]).await, first + 3);
    }
    assert_eq!(texts(&ours, "s").await, ["x", "y", "z", "t"].repeat(3));
    assert_eq!(ours.info("s").await.expect("reads").expect("is there").entries, 12);
}

#[tokio::test]
async fn an_open_that_nobody_waited_for_holds_nothing() {
    let place = Place::new();
    let journal = place.open();
    let lock = place.locked();
    let mut opening = journal.open("s", "a");
    assert!(opening.as_mut().now_or_never().is_none(), "the thread cannot answer");
    drop(opening);
    lock.execute_batch("COMMIT").expect("commits");
    journal.delete("nothing").await.expect("a turn of the thread");
    assert_eq!(kind(journal.open("s", "a").await), None);
}

#[test]
fn a_lease_too_short_to_be_renewed_is_refused() {
    let place = Place::new();
    let builder = agent_store::SqliteJournal::builder(place.path());
    let e = builder.lease_ttl(Duration::from_millis(999)).open().expect_err("too short");
    assert_eq!(e.kind(), ErrorKind::Config);
    assert!(e.message().contains("set lease_ttl to 1s or more"), "{e}");
}
