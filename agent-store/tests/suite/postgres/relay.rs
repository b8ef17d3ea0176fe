//! The relay between processes over PostgreSQL.

use agent_dispatch::{ChunkRelay, RelayBatch, RelayItem, RunAddress};
use agent_store::PostgresRelay;
use futures::StreamExt;

use super::Place;

fn run(name: &str) -> RunAddress {
    RunAddress::new("support", "garden", name)
}

fn batch(number: u64, items: u64) -> RelayBatch {
    RelayBatch::new(7, number, (0..items).map(RelayItem::Reached).collect())
}

async fn open(place: &Place) -> PostgresRelay {
    PostgresRelay::connect_schema(&place.url, &place.schema).await.expect("connects")
}

#[tokio::test]
async fn batches_reach_the_process_that_watches_and_only_that_run() {
    let Some(place) = Place::new() else { return };
    let (worker, server) = (open(&place).await, open(&place).await);
    assert!(!worker.is_watched(&run("r")));
    let mut batches = server.subscribe(&run("r"));
    let since = worker.watched(&run("r"), 0).await;
    assert!(worker.is_watched(&run("r")) && !worker.is_watched(&run("other")));
    worker.publish(&run("other"), batch(0, 1));
    worker.publish(&run("r"), batch(0, 3));
    worker.publish(&run("r"), batch(1, 5_000)); // several payloads
    let received: Vec<_> = batches.by_ref().take(2).collect().await;
    assert_eq!(received, [batch(0, 3), batch(1, 5_000)]);
    let third = open(&place).await;
    let mut also = third.subscribe(&run("r"));
    assert!(worker.watched(&run("r"), since).await > since, "each new subscription is noticed");
    worker.publish(&run("r"), batch(2, 1));
    assert_eq!((batches.next().await, also.next().await), (Some(batch(2, 1)), Some(batch(2, 1))));
}

#[tokio::test]
async fn a_worker_that_comes_later_learns_what_is_watched() {
    let Some(place) = Place::new() else { return };
    let server = open(&place).await;
    let mut batches = server.subscribe(&run("r"));
    let worker = open(&place).await;
    worker.watched(&run("r"), 0).await;
    worker.publish(&run("r"), batch(0, 1));
    assert_eq!(batches.next().await, Some(batch(0, 1)));
}

#[tokio::test]
async fn a_lost_connection_is_reopened_and_subscriptions_continue() {
    let Some(place) = Place::new() else { return };
    let (worker, server) = (open(&place).await, open(&place).await);
    let mut batches = server.subscribe(&run("r"));
    let since = worker.watched(&run("r"), 0).await;
    place.cut().await;
    assert!(worker.watched(&run("r"), since).await > since);
    worker.publish(&run("r"), batch(1, 1));
    assert_eq!(batches.next().await, Some(batch(1, 1)));
}

#[tokio::test]
async fn another_schema_is_another_relay() {
    let (Some(place), Some(other)) = (Place::new(), Place::new()) else { return };
    let (one, two) = (open(&place).await, open(&other).await);
    let _foreign = two.subscribe(&run("r"));
    two.watched(&run("r"), 0).await;
    let _own = one.subscribe(&run("s"));
    one.watched(&run("s"), 0).await;
    assert!(!one.is_watched(&run("r")));
}

#[tokio::test]
async fn a_pooler_is_refused_by_name() {
    let Some(place) = Place::new() else { return };
    let refused = PostgresRelay::connect(&format!("{} pooled=true", place.url)).await.expect_err("it cannot listen");
    assert!(refused.message().contains("pooler"), "{refused}");
}
