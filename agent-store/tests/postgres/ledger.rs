//! The ledger in a database, beside what every ledger does.

use std::time::{Duration, Instant};

use agent_core::{Amounts, Balance, Caps, ErrorKind, Ledger};
use agent_store::PostgresLedger;

use crate::Place;

pub(crate) async fn open(place: &Place) -> PostgresLedger {
    open_with(place, Duration::from_secs(30)).await
}

async fn open_with(place: &Place, dead_after: Duration) -> PostgresLedger {
    PostgresLedger::connect_with(&place.url, &place.schema, dead_after).await.expect("connects")
}

fn tokens(n: u64) -> Amounts {
    Amounts::none().tokens(n)
}

async fn reserved(ledger: &PostgresLedger) -> u64 {
    ledger.reserve("x", &Caps::default(), tokens(10)).await.expect("works").expect("fits")
}

#[tokio::test]
async fn what_the_dead_had_set_aside_counts_as_used_and_the_living_keep_theirs() {
    let Some(place) = Place::new() else { return };
    let soon = Duration::from_secs(1);
    let (dead, alive) = (open_with(&place, soon).await, open_with(&place, soon).await);
    reserved(&dead).await;
    reserved(&alive).await;
    drop(dead); // without settling: its thread says no more that it lives
    let watcher = open(&place).await;
    let began = Instant::now();
    while watcher.balance("x").await.expect("reads") != Balance::new(tokens(10), tokens(10)) {
        assert!(began.elapsed() < Duration::from_secs(20), "{:?}", watcher.balance("x").await);
        tokio::time::sleep(Duration::from_millis(100)).await; // the server's clock cannot be paused
    }
    drop(alive);
}

#[tokio::test]
async fn a_lost_connection_is_made_again_and_a_settling_arrives() {
    let Some(place) = Place::new() else { return };
    let ledger = open(&place).await;
    let receipt = reserved(&ledger).await;
    place.cut().await;
    ledger.settle("x", receipt, tokens(4)).await.expect("on another connection");
    assert_eq!(ledger.balance("x").await.expect("reads"), Balance::new(tokens(4), Amounts::none()));
}

#[tokio::test]
async fn a_time_too_short_to_say_that_one_lives_is_refused() {
    let e = PostgresLedger::connect_with("host=/nowhere", "s", Duration::from_millis(9)).await.expect_err("too short");
    assert!(e.kind() == ErrorKind::Config && e.message().contains("set 1s or more"), "{e}");
}
