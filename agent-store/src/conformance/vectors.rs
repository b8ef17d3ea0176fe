//! Conformance tests of vector stores.

use std::sync::Arc;

use agent_core::ErrorKind;
use agent_retrieval::{
    memory::Filter,
    retrieval::{Found, Record, Vector, VectorQuery, VectorSpace, VectorStore},
};
use futures::future::join_all;
use serde_json::json;

/// Generates one test per claim about a [`VectorStore`](agent_retrieval::retrieval::VectorStore). Takes
/// a closure that returns a fresh store in an [`Arc`] and a guard that must outlive it.
///
/// ```
/// mod in_memory {
///     use std::sync::Arc;
///
///     agent_store::vector_store_conformance!(|| (Arc::new(agent_store::InMemoryVectorStore::default()), ()));
/// }
/// ```
#[macro_export]
macro_rules! vector_store_conformance {
    ($make:expr) => {
        $crate::claims! { by_reference, $make;
            what_is_kept_comes_back_to_the_last_bit
            a_record_of_a_known_id_takes_its_place
            a_batch_is_kept_whole_or_not_at_all
            vectors_of_another_embedder_or_length_are_refused
            vectors_without_a_direction_are_refused
            the_nearest_come_first_with_their_cosines
            the_nearest_of_many_are_those_of_brute_force
            words_are_found_and_rare_ones_count_more
            a_text_is_words_and_nothing_else
            both_searches_are_fused_by_their_places
            without_a_question_the_newest_are_found_first
            filters_hold_for_every_search
            any_filter_means_what_it_means_in_memory
            thresholds_leave_out_what_is_too_far
            collections_know_nothing_of_each_other
            records_are_deleted_by_id_and_by_filter
            a_cleared_collection_takes_vectors_of_another_embedder
            records_without_a_vector_are_found_by_their_words_alone
            many_writers_and_readers_do_not_disturb_each_other
        }
    };
}

type Store<'a> = &'a Arc<dyn VectorStore>;

const EMBEDDER: &str = "test:directions";

fn vector(values: &[f32]) -> Vector {
    Vector::of(EMBEDDER, values.to_vec())
}

/// Five records, oldest first.
fn records() -> Vec<Record> {
    let records = [
        ("bees", "Ada keeps bees in her garden.", [1.0, 0.1, 0.0], json!({"topic": "garden", "year": 2021})),
        ("nuts", "Ada is allergic to nuts.", [0.0, 1.0, 0.2], json!({"topic": "food", "year": 2019})),
        ("honey", "The bees gave honey; bees love clover.", [0.8, 0.6, 0.0], json!({"topic": "garden", "year": 2023})),
        ("train", "She takes the early train.", [0.0, 0.0, -2.0], json!({"topic": "travel"})),
        ("cold", "Winter was cold.", [-1.0, 0.0, 0.5], json!({"topic": "weather", "year": 2019.0})),
    ];
    let record = |(id, text, values, metadata): (&str, &str, [f32; 3], serde_json::Value)| {
        let mut record = Record::new(id, text).vector(vector(&values));
        record.metadata = metadata.as_object().cloned().expect("an object");
        record
    };
    records.map(record).into()
}

async fn fill(store: Store<'_>, collection: &str) {
    store.upsert(collection, records()).await.expect("keeps");
}

async fn search(store: Store<'_>, query: &VectorQuery) -> Vec<Found> {
    store.search("c", query).await.expect("searches")
}

async fn ids(store: Store<'_>, query: VectorQuery) -> Vec<String> {
    search(store, &query).await.into_iter().map(|found| found.record.id).collect()
}

fn owned(ids: &[&str]) -> Vec<String> {
    ids.iter().map(|id| (*id).to_owned()).collect()
}

/// Text, metadata and vectors come back in the requested order; missing records are left out.
pub async fn what_is_kept_comes_back_to_the_last_bit(store: Store<'_>) {
    let values = [0.1, -1e-20, 3.402_823e38, f32::MIN_POSITIVE, 1.0 / 3.0];
    let odd = Record::new("odd id '; --\n\"é", "Äpfel, 猫\t\\ 'x' \"y\"\n")
        .with("nested", json!({"list": [1, 2.5, null, true], "text": "ü"}))
        .vector(vector(&values));
    let plain = Record::new("plain", "");
    store.upsert("c", vec![odd.clone(), plain.clone()]).await.expect("keeps");
    let asked = [plain.id.clone(), "nowhere".to_owned(), odd.id.clone()];
    assert_eq!(store.get("c", &asked).await.expect("reads"), [plain, odd]);
    assert_eq!(store.space("c").await.expect("reads"), Some(VectorSpace::new(EMBEDDER, 5)));
    assert_eq!(store.count("c", None).await.expect("counts"), 2);
    assert!(store.get("other", &asked).await.expect("reads").is_empty());
    assert_eq!(store.space("other").await.expect("reads"), None);
}

/// The previous text is no longer found, and the record counts as the newest.
pub async fn a_record_of_a_known_id_takes_its_place(store: Store<'_>) {
    fill(store, "c").await;
    let changed = |text| Record::new("bees", text).with("topic", "sea").vector(vector(&[0.0, 0.0, 1.0]));
    store.upsert("c", vec![changed("Ada sails."), changed("Ada swims.")]).await.expect("keeps");
    assert_eq!(store.count("c", None).await.expect("counts"), 5);
    assert_eq!(ids(store, VectorQuery::text("garden")).await, owned(&[]));
    assert_eq!(ids(store, VectorQuery::text("sails")).await, owned(&[]), "the last record of a batch wins");
    assert_eq!(ids(store, VectorQuery::text("swims")).await, owned(&["bees"]));
    assert_eq!(ids(store, VectorQuery::nearest(vector(&[0.0, 0.0, 1.0])).top_k(1)).await, owned(&["bees"]));
    assert_eq!(ids(store, VectorQuery::newest().top_k(1)).await, owned(&["bees"]));
}

/// A batch with one invalid vector changes nothing.
pub async fn a_batch_is_kept_whole_or_not_at_all(store: Store<'_>) {
    let wrong = Record::new("wrong", "wrong").vector(vector(&[1.0, 2.0]));
    let batch = |first: Record| vec![first, wrong.clone(), Record::new("last", "last")];
    let fresh = Record::new("fresh", "fresh").vector(vector(&[1.0, 0.0, 0.0]));
    assert!(store.upsert("c", batch(fresh.clone())).await.is_err());
    assert_eq!((store.count("c", None).await.expect("counts"), store.space("c").await.expect("reads")), (0, None));
    fill(store, "c").await;
    let bees = Record::new("bees", "changed").vector(vector(&[1.0, 0.0, 0.0]));
    assert!(store.upsert("c", batch(bees)).await.is_err());
    assert_eq!(store.get("c", &owned(&["bees", "wrong", "last"])).await.expect("reads"), records()[..1]);
    store.upsert("c", vec![fresh]).await.expect("works as before");
    assert_eq!(store.count("c", None).await.expect("counts"), 6);
}

/// On upsert and on search; the error names both spaces.
pub async fn vectors_of_another_embedder_or_length_are_refused(store: Store<'_>) {
    fill(store, "c").await;
    for other in [Vector::of("other:model", vec![1.0, 0.0, 0.0]), vector(&[1.0, 0.0]), vector(&[1.0; 4])] {
        let kept = store.upsert("c", vec![Record::new("x", "x").vector(other.clone())]).await.expect_err("refused");
        let searched = store.search("c", &VectorQuery::nearest(other)).await.expect_err("refused");
        for e in [kept, searched] {
            assert_eq!(e.kind(), ErrorKind::Config, "{e}");
            assert!(e.to_string().contains("test:directions with 3 dimensions"), "{e}");
        }
    }
    assert_eq!(store.count("c", None).await.expect("counts"), 5);
}

/// No similarity is defined for them.
pub async fn vectors_without_a_direction_are_refused(store: Store<'_>) {
    for values in [vec![], vec![0.0; 3], vec![1.0, f32::NAN, 0.0], vec![f32::INFINITY, 0.0, 0.0]] {
        let kept = store.upsert("c", vec![Record::new("x", "x").vector(vector(&values))]).await;
        assert_eq!(kept.expect_err("refused").kind(), ErrorKind::Config, "{values:?}");
        let searched = store.search("c", &VectorQuery::nearest(vector(&values))).await;
        assert_eq!(searched.expect_err("refused").kind(), ErrorKind::Config, "{values:?}");
    }
}

/// Whatever the length of the vectors.
pub async fn the_nearest_come_first_with_their_cosines(store: Store<'_>) {
    fill(store, "c").await;
    let found = search(store, &VectorQuery::nearest(vector(&[5.0, 0.0, 0.0]))).await;
    let order: Vec<_> = found.iter().map(|found| found.record.id.as_str()).collect();
    assert_eq!(order, ["bees", "honey", "train", "nuts", "cold"], "equal scores are ordered newest first");
    let expected = [0.995_037, 0.8, 0.0, 0.0, -0.894_427];
    for (found, expected) in found.iter().zip(expected) {
        let similarity = found.similarity.expect("found by its vector");
        assert!((similarity - expected).abs() < 1e-5 && found.score == f64::from(similarity), "{found:?}");
        assert!(found.record.vector.is_none() && !found.record.text.is_empty());
    }
}

/// With any limit, and with a filter.
pub async fn the_nearest_of_many_are_those_of_brute_force(store: Store<'_>) {
    let mut state = 7_u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 16) as f32 / 32_768.0 - 1.0
    };
    let many: Vec<Record> = (0..500)
        .map(|n| {
            let values: Vec<f32> = (0..37).map(|_| next()).collect();
            Record::new(format!("{n}"), "").with("n", n).vector(vector(&values))
        })
        .collect();
    store.upsert("c", many.clone()).await.expect("keeps");
    for (k, least) in [(1, 0), (10, 0), (10, 450), (60, 100), (600, 0)] {
        let asked: Vec<f32> = (0..37).map(|_| next()).collect();
        let values = |record: &Record| record.vector.clone().expect("a vector").values;
        let mut all: Vec<_> =
            many[least..].iter().map(|r| (agent_retrieval::search::cosine(&values(r), &asked), &r.id)).collect();
        all.sort_by(|a, b| b.0.total_cmp(&a.0));
        let query = VectorQuery::nearest(vector(&asked)).top_k(k).filter(Filter::ge("n", least));
        let found = search(store, &query).await;
        assert_eq!(found.len(), k.min(all.len()));
        for (found, (similarity, id)) in found.iter().zip(all) {
            let close = (found.similarity.expect("a similarity") - similarity).abs() < 1e-5;
            assert!(close && found.record.id == *id, "{found:?} for {id}, {similarity}");
        }
    }
}

/// In any notation of identifiers, ignoring case.
pub async fn words_are_found_and_rare_ones_count_more(store: Store<'_>) {
    fill(store, "c").await;
    assert_eq!(ids(store, VectorQuery::text("Which NUTS?")).await, owned(&["nuts"]));
    assert_eq!(ids(store, VectorQuery::text("bees and clover")).await, owned(&["honey", "bees"]));
    assert_eq!(ids(store, VectorQuery::text("bees garden")).await[0], "bees");
    assert_eq!(ids(store, VectorQuery::text("bees clover").top_k(1)).await, owned(&["honey"]));
    let found = search(store, &VectorQuery::text("bees and clover")).await;
    assert!(found[0].score > found[1].score && found[1].score > 0.0, "{found:?}");
    assert_eq!(found[0].similarity, None);
    store.upsert("c", vec![Record::new("code", "fn set_max(RetryLayer)")]).await.expect("keeps");
    for text in ["retry_layer", "retry", "SetMax", "max"] {
        assert_eq!(ids(store, VectorQuery::text(text)).await, owned(&["code"]), "{text}");
    }
}

/// Operators of query languages have no meaning.
pub async fn a_text_is_words_and_nothing_else(store: Store<'_>) {
    fill(store, "c").await;
    for text in
        ["nuts AND bees NOT ada", "\"nuts", "nuts*", "words:nuts", "nuts | !", "NEAR(nuts)", "nuts'--", "nuts:*&"]
    {
        let found = ids(store, VectorQuery::text(text)).await;
        assert!(found.contains(&"nuts".to_owned()), "{text}: {found:?}");
    }
    assert!(ids(store, VectorQuery::text("nut*")).await.is_empty(), "no prefix search");
    let odd = format!("Élodie mag Äpfel, 猫 too, 1e10 and v1.2.3 {}", "x".repeat(3_000));
    store.upsert("c", vec![Record::new("odd", odd)]).await.expect("keeps");
    for text in ["élodie", "ÄPFEL", "猫", "1e10", "V1"] {
        assert_eq!(ids(store, VectorQuery::text(text)).await, owned(&["odd"]), "{text}");
    }
}

/// A record that ranks high in both searches comes before the first of only one.
pub async fn both_searches_are_fused_by_their_places(store: Store<'_>) {
    fill(store, "c").await;
    // By words: honey, bees. By vector: honey, nuts, bees, train, cold.
    let query = VectorQuery::text("bees clover").vector(vector(&[0.5, 1.0, 0.0]));
    let found = search(store, &query.clone().top_k(3)).await;
    let order: Vec<_> = found.iter().map(|found| (found.record.id.as_str(), found.similarity.is_some())).collect();
    assert_eq!(order, [("honey", true), ("bees", true), ("nuts", true)]);
    assert!((found[0].score - (1.0 / 61.0 + 1.0 / 61.0)).abs() < 2e-3, "{found:?}");
    let near = ids(store, query.clone().words_weight(0.0).top_k(1)).await;
    assert_eq!(near, ids(store, VectorQuery::nearest(vector(&[0.5, 1.0, 0.0])).top_k(1)).await);
    assert_eq!(ids(store, query.top_k(0)).await, owned(&[]));
    let wordless = VectorQuery::text("?!").vector(vector(&[0.0, 0.0, -1.0])).top_k(1);
    assert_eq!(search(store, &wordless).await[0].score, 1.0, "without words, only the vector counts");
}

/// With a score of zero.
pub async fn without_a_question_the_newest_are_found_first(store: Store<'_>) {
    fill(store, "c").await;
    for query in [VectorQuery::newest(), VectorQuery::text(""), VectorQuery::text(" ?!\n")] {
        let found = search(store, &query.top_k(3)).await;
        assert!(found.iter().all(|found| found.score == 0.0 && found.similarity.is_none()), "{found:?}");
        let order: Vec<_> = found.iter().map(|found| found.record.id.as_str()).collect();
        assert_eq!(order, ["cold", "train", "honey"]);
    }
    assert_eq!(ids(store, VectorQuery::newest()).await.len(), 5);
}

/// The filter applies before the limit.
pub async fn filters_hold_for_every_search(store: Store<'_>) {
    fill(store, "c").await;
    let near = || VectorQuery::nearest(vector(&[1.0, 0.0, 0.0])).top_k(1);
    let both = || VectorQuery::text("bees").vector(vector(&[1.0, 0.0, 0.0])).top_k(1);
    let words = || VectorQuery::text("bees").top_k(1);
    for make in [&near as &dyn Fn() -> VectorQuery, &both, &words] {
        assert_eq!(ids(store, make().filter(Filter::lt("year", 2022))).await, owned(&["bees"]));
        assert_eq!(ids(store, make().filter(Filter::gt("year", 2022))).await, owned(&["honey"]));
    }
    assert_eq!(ids(store, near().filter(Filter::eq("topic", "travel"))).await, owned(&["train"]));
    assert!(ids(store, words().filter(Filter::eq("topic", "food"))).await.is_empty());
    let newest = |filter| VectorQuery::newest().filter(filter);
    assert_eq!(
        ids(store, newest(Filter::eq("year", 2019))).await,
        owned(&["cold", "nuts"]),
        "numbers compare by value"
    );
    assert_eq!(ids(store, newest(Filter::eq("year", json!(null)))).await, owned(&["train"]));
    let far = Filter::is_in("topic", json!(["travel", "weather"])).and(Filter::ne("year", 2019));
    assert_eq!(ids(store, newest(far.clone())).await, owned(&["train"]));
    assert_eq!(store.count("c", Some(&Filter::not(far))).await.expect("counts"), 4);
}

/// Every comparison with every kind of value, in every combination.
pub async fn any_filter_means_what_it_means_in_memory(store: Store<'_>) {
    let values = [
        json!(null),
        json!(true),
        json!(2),
        json!(2.0),
        json!(-0.5),
        json!(1e300),
        json!("b"),
        json!("B"),
        json!("é 'x'"),
        json!(""),
        json!([1, "b"]),
        json!({"a": 1}),
    ];
    let record = |(n, value): (i32, &serde_json::Value)| Record::new(format!("{n}"), "").with("f", value.clone());
    let mut all: Vec<Record> = (0..).zip(&values).map(record).collect();
    all.push(Record::new("without", ""));
    store.upsert("c", all.clone()).await.expect("keeps");
    let mut filters =
        vec![Filter::And(vec![]), Filter::Or(vec![]), Filter::is_in("f", json!([])), Filter::is_in("f", 2)];
    for value in &values {
        let list = json!([value, "b"]);
        for filter in [
            Filter::eq("f", value.clone()),
            Filter::ne("f", value.clone()),
            Filter::gt("f", value.clone()),
            Filter::ge("f", value.clone()),
            Filter::lt("f", value.clone()),
            Filter::le("f", value.clone()),
            Filter::is_in("f", list.clone()),
            Filter::not_in("f", list),
        ] {
            filters.push(Filter::not(filter.clone()).and(Filter::ne("f", "b")).or(Filter::eq("g", 1)));
            filters.push(filter);
        }
    }
    for filter in filters {
        let expected: Vec<_> = all.iter().rev().filter(|r| filter.matches(&r.metadata)).map(|r| r.id.clone()).collect();
        let found = ids(store, VectorQuery::newest().top_k(99).filter(filter.clone())).await;
        assert_eq!(found, expected, "{filter:?}");
    }
}

/// By cosine similarity for vector matches, by score for all.
pub async fn thresholds_leave_out_what_is_too_far(store: Store<'_>) {
    fill(store, "c").await;
    let near = || VectorQuery::nearest(vector(&[1.0, 0.0, 0.0]));
    assert_eq!(ids(store, near().min_similarity(0.5)).await, owned(&["bees", "honey"]));
    assert_eq!(ids(store, near().min_score(0.9)).await, owned(&["bees"]));
    let both = VectorQuery::text("nuts").vector(vector(&[1.0, 0.0, 0.0])).min_similarity(0.5);
    let found = ids(store, both).await;
    assert_eq!(found.len(), 3, "full-text matches need no similarity: {found:?}");
    assert!(ids(store, VectorQuery::text("nuts").min_score(1e9)).await.is_empty());
}

/// Isolation of tenants: by search, by a known id and by a similar name.
pub async fn collections_know_nothing_of_each_other(store: Store<'_>) {
    fill(store, "c").await;
    let theirs = Record::new("bees", "Bob keeps bees.").vector(Vector::of("other:model", vec![1.0, 0.0]));
    store.upsert("d", vec![theirs.clone()]).await.expect("keeps what is of another space");
    let everything = [VectorQuery::newest(), VectorQuery::text("bees"), VectorQuery::nearest(vector(&[1.0, 0.0, 0.0]))];
    for name in ["", "C", "c ", "%", "c' OR 1=1 --", "1"] {
        for query in &everything {
            assert!(store.search(name, query).await.expect("searches").is_empty(), "{name:?}");
        }
        assert!(store.get(name, &owned(&["bees"])).await.expect("reads").is_empty());
        assert_eq!(store.delete(name, &owned(&["bees"])).await.expect("deletes"), 0);
        assert_eq!(store.delete_where(name, &Filter::And(vec![])).await.expect("deletes"), 0);
        assert_eq!(store.clear(name).await.expect("clears"), 0);
        assert_eq!(store.count(name, None).await.expect("counts"), 0);
    }
    assert_eq!(store.clear("d").await.expect("clears"), 1);
    assert_eq!(ids(store, VectorQuery::text("bees")).await.len(), 2);
    assert_eq!(store.count("c", None).await.expect("counts"), 5);
}

/// No search finds a deleted record.
pub async fn records_are_deleted_by_id_and_by_filter(store: Store<'_>) {
    fill(store, "c").await;
    assert_eq!(store.delete("c", &owned(&["nuts", "nowhere", "nuts"])).await.expect("deletes"), 1);
    assert_eq!(store.delete("c", &[]).await.expect("deletes"), 0);
    assert!(ids(store, VectorQuery::text("nuts")).await.is_empty());
    assert_eq!(store.delete_where("c", &Filter::eq("topic", "garden")).await.expect("deletes"), 2);
    assert_eq!(store.delete_where("c", &Filter::eq("topic", "garden")).await.expect("deletes"), 0);
    assert!(ids(store, VectorQuery::text("bees")).await.is_empty());
    let left = ids(store, VectorQuery::nearest(vector(&[0.0, 1.0, -0.1]))).await;
    assert_eq!(left, owned(&["train", "cold"]));
    assert_eq!(store.space("c").await.expect("reads"), Some(VectorSpace::new(EMBEDDER, 3)), "the vector space is kept");
}

/// Before and after.
pub async fn a_cleared_collection_takes_vectors_of_another_embedder(store: Store<'_>) {
    fill(store, "c").await;
    assert_eq!(store.clear("c").await.expect("clears"), 5);
    assert_eq!((store.count("c", None).await.expect("counts"), store.space("c").await.expect("reads")), (0, None));
    let other = Vector::of("other:model", vec![1.0, 1.0]);
    store.upsert("c", vec![Record::new("new", "new bees").vector(other.clone())]).await.expect("keeps");
    assert_eq!(ids(store, VectorQuery::text("bees").vector(other)).await, owned(&["new"]));
}

/// A collection without vectors has no vector space.
pub async fn records_without_a_vector_are_found_by_their_words_alone(store: Store<'_>) {
    store.upsert("c", vec![Record::new("plain", "plain bees")]).await.expect("keeps");
    assert_eq!(store.space("c").await.expect("reads"), None);
    assert!(ids(store, VectorQuery::nearest(vector(&[1.0, 0.0, 0.0]))).await.is_empty());
    fill(store, "c").await;
    assert_eq!(ids(store, VectorQuery::nearest(vector(&[1.0, 0.0, 0.0])).top_k(99)).await.len(), 5);
    assert!(
        ids(store, VectorQuery::text("plain").vector(vector(&[1.0, 0.0, 0.0]))).await.contains(&"plain".to_owned())
    );
}

/// Concurrent batches are atomic, and nothing is lost.
pub async fn many_writers_and_readers_do_not_disturb_each_other(store: Store<'_>) {
    const BATCH: usize = 5;
    let writers = (0..4).map(|writer| {
        let store = store.clone();
        tokio::spawn(async move {
            for round in 0..10 {
                let record = |n| {
                    let record = Record::new(format!("{writer}/{round}/{n}"), "bees").with("writer", writer);
                    record.vector(vector(&[1.0, writer as f32, round as f32]))
                };
                // One record that all tasks write, to provoke conflicts.
                let mut batch: Vec<_> = (0..BATCH - 1).map(record).collect();
                batch.push(Record::new("shared", "bees").with("writer", -1));
                store.upsert("c", batch).await.expect("keeps");
                let count = store.count("c", Some(&Filter::eq("writer", writer))).await.expect("counts");
                assert_eq!(count, (round + 1) * (BATCH - 1), "a writer sees its own writes");
            }
        })
    });
    let readers = (0..2).map(|_| {
        let store = store.clone();
        tokio::spawn(async move {
            for _ in 0..20 {
                let query = VectorQuery::text("bees").vector(vector(&[1.0, 1.0, 1.0])).top_k(3);
                store.search("c", &query).await.expect("searches");
                let whole = store.count("c", Some(&Filter::ne("writer", -1))).await.expect("counts");
                assert_eq!(whole % (BATCH - 1), 0, "a batch was read partially");
            }
        })
    });
    let writers: Vec<_> = writers.collect();
    for task in join_all(writers.into_iter().chain(readers.collect::<Vec<_>>())).await {
        task.expect("no panic");
    }
    assert_eq!(store.count("c", None).await.expect("counts"), 4 * 10 * (BATCH - 1) + 1);
}
