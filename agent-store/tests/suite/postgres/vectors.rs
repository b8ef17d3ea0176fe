//! Tests of the PostgreSQL vector store, beside the conformance tests.

use std::{io::Write, sync::Arc};

use agent_core::ErrorKind;
use agent_retrieval::{
    memory::Filter,
    retrieval::{Record, Vector, VectorQuery, VectorStore},
};
use agent_store::{InMemoryVectorStore, PostgresVectorStore};

use super::{Place, block_on};

/// Opens a new store; none without a server with pgvector, which is logged.
async fn open(place: &Place) -> Option<PostgresVectorStore> {
    match PostgresVectorStore::connect_with(&place.url, &place.schema, 4).await {
        Ok(store) => Some(store),
        Err(e) if e.message().contains("pgvector is not installed") => {
            // Not by a macro, whose output the test harness captures.
            let _ = writeln!(std::io::stderr(), "skipped: pgvector is not installed");
            None
        }
        Err(e) => panic!("{e}"),
    }
}

async fn opened() -> Option<(Place, PostgresVectorStore)> {
    let place = Place::new()?;
    let store = open(&place).await?;
    Some((place, store))
}

mod conformance {
    use super::{Arc, InMemoryVectorStore, VectorStore, block_on, opened};

    agent_store::vector_store_conformance!(|| {
        let store: Arc<dyn VectorStore> = match block_on(opened()) {
            Some((_, store)) => Arc::new(store),
            None => Arc::new(InMemoryVectorStore::default()),
        };
        (store, ())
    });
}

fn record(id: impl Into<String>, values: Vec<f32>) -> Record {
    let id = id.into();
    let text = format!("about {id}");
    Record::new(id, text).vector(Vector::of("test:e", values))
}

#[tokio::test]
async fn an_index_finds_near_ones_and_a_filter_is_exact_beside_it() {
    let Some((place, store)) = opened().await else { return };
    let e = store.create_index("c").await.expect_err("there is nothing to index");
    assert_eq!(e.kind(), ErrorKind::Config);
    let on_a_circle = |n: u32| {
        let angle = n as f32 / 2_000.0 * std::f32::consts::TAU;
        record(n.to_string(), vec![angle.cos(), angle.sin(), 0.1]).with("n", n)
    };
    store.upsert("other", vec![record("x", vec![1.0; 5])]).await.expect("keeps");
    store.upsert("c", (0..2_000).map(on_a_circle).collect()).await.expect("keeps");
    store.create_index("c").await.expect("makes one");
    store.create_index("c").await.expect("has one");
    place.execute("ANALYZE record").await;
    let near = VectorQuery::nearest(Vector::of("test:e", vec![1.0, 0.0, 0.1]));
    let ids = async |query: &VectorQuery| {
        let found = store.search("c", query).await.expect("searches");
        found.into_iter().map(|found| found.record.id).collect::<Vec<_>>()
    };
    // An index may return a close record instead of the nearest one.
    let found = ids(&near.clone().top_k(3)).await;
    let is_near = |id: &String| id.parse::<i32>().is_ok_and(|n| !(20..1_980).contains(&n));
    assert!(found.len() == 3 && found.iter().all(is_near), "{found:?}");
    assert_eq!(ids(&near.clone().filter(Filter::eq("n", 1_000))).await, ["1000"], "which is the farthest");
    let indexes = format!(
        "SELECT count(*) FROM pg_indexes WHERE schemaname = '{}' AND indexdef LIKE '%hnsw%'",
        place.schema.replace('\'', "''")
    );
    assert_eq!(place.count(&indexes).await, 1);
    store.upsert("c", vec![record("new", vec![1.0, 0.0, 0.1])]).await.expect("keeps what comes later");
    assert_eq!(ids(&near.top_k(1)).await.len(), 1);
    assert_eq!(store.clear("c").await.expect("clears"), 2_001);
    assert_eq!(place.count(&indexes).await, 0);
    store.upsert("c", vec![record("longer", vec![1.0; 7])]).await.expect("takes vectors of another length");
}

#[tokio::test]
async fn a_batch_that_fails_in_the_middle_leaves_nothing() {
    let Some((place, store)) = opened().await else { return };
    store.upsert("c", vec![record("old", vec![1.0])]).await.expect("keeps");
    place.execute("ALTER TABLE record ADD CHECK (id <> 'broken')").await;
    let batch = ["old", "new", "broken"].map(|id| record(id, vec![2.0]));
    assert_eq!(store.upsert("c", batch.to_vec()).await.expect_err("fails").kind(), ErrorKind::Store);
    let ids = ["old", "new", "broken"].map(str::to_owned);
    assert_eq!(store.get("c", &ids).await.expect("reads"), [record("old", vec![1.0])]);
}

#[tokio::test]
async fn a_lost_connection_is_made_again() {
    let Some((place, store)) = opened().await else { return };
    store.upsert("c", vec![record("old", vec![1.0])]).await.expect("keeps");
    place.cut().await;
    assert_eq!(store.count("c", None).await.expect("on another connection"), 1);
    store.upsert("c", vec![record("new", vec![1.0])]).await.expect("keeps");
}

#[tokio::test]
async fn a_text_with_a_nul_is_refused_with_a_word_about_it() {
    let Some((_, store)) = opened().await else { return };
    let e = store.upsert("c", vec![Record::new("x", "a\0b")]).await.expect_err("refused");
    assert!(e.kind() == ErrorKind::Config && e.message().contains("NUL"), "{e}");
}

#[tokio::test]
async fn two_stores_over_one_schema_see_the_same_and_may_open_at_once() {
    let Some(place) = Place::new() else { return };
    let (a, b) = tokio::join!(open(&place), open(&place));
    let Some((a, b)) = a.zip(b) else { return };
    a.upsert("c", vec![record("bees", vec![1.0, 2.0])]).await.expect("keeps");
    assert_eq!(b.search("c", &VectorQuery::text("bees")).await.expect("searches").len(), 1);
}
