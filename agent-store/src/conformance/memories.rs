//! Conformance tests of memory stores.

use agent_retrieval::memory::{Filter, Memory, MemoryQuery, MemoryStore, ScoredMemory};
use serde_json::json;

/// Generates one test per claim about a [`MemoryStore`](agent_retrieval::memory::MemoryStore). Takes a
/// closure that returns a fresh store and a guard that must outlive it.
///
/// ```
/// mod in_memory {
///     agent_store::memory_store_conformance!(|| (agent_store::InMemoryMemoryStore::default(), ()));
/// }
/// ```
#[macro_export]
macro_rules! memory_store_conformance {
    ($make:expr) => {
        $crate::claims! { by_reference, $make;
            what_fits_best_comes_first
            no_more_than_wanted_are_found
            filters_choose_among_what_fits
            without_a_word_the_newest_are_found
            a_query_is_words_and_nothing_else
            users_do_not_see_each_other
            a_memory_can_be_changed_and_deleted
            a_memory_of_a_known_id_takes_its_place
        }
    };
}

/// Enough texts that a word in one or two of them is rare.
async fn filled(store: &dyn MemoryStore) {
    let memories = [
        ("bees", "Ada keeps bees in her garden.", json!({"topic": "garden", "year": 2021})),
        ("nuts", "Ada is allergic to nuts.", json!({"topic": "food", "year": 2019})),
        ("honey", "The bees gave honey; bees love clover.", json!({"topic": "garden", "year": 2023})),
        ("train", "She takes the early train.", json!({"topic": "travel"})),
        ("chess", "On Sundays there is chess.", json!({})),
        ("cold", "Winter was cold.", json!({"topic": "weather", "year": 2019.0})),
    ];
    let memories = memories.map(|(id, text, metadata)| {
        let mut memory = Memory::new(text).with_id(id);
        memory.metadata = metadata.as_object().cloned().expect("an object");
        memory
    });
    let ids = store.add("ada", memories.to_vec()).await.expect("adds");
    assert_eq!(ids, ["bees", "nuts", "honey", "train", "chess", "cold"]);
}

async fn search(store: &dyn MemoryStore, query: &MemoryQuery) -> Vec<ScoredMemory> {
    store.search("ada", query).await.expect("searches")
}

async fn ids(store: &dyn MemoryStore, query: MemoryQuery) -> Vec<String> {
    search(store, &query).await.into_iter().map(|found| found.memory.id.expect("an id")).collect()
}

/// More matching words, and rarer ones, rank higher; case is ignored; texts without a match are not
/// found.
pub async fn what_fits_best_comes_first(store: &dyn MemoryStore) {
    filled(store).await;
    assert_eq!(ids(store, MemoryQuery::new("Which NUTS?")).await, ["nuts"]);
    assert_eq!(ids(store, MemoryQuery::new("bees and clover")).await, ["honey", "bees"]);
    assert_eq!(ids(store, MemoryQuery::new("garden bees")).await[0], "bees");
    assert!(ids(store, MemoryQuery::new("submarine")).await.is_empty());
    let found = search(store, &MemoryQuery::new("bees and clover")).await;
    assert!(found[0].score > found[1].score && found[1].score > 0.0, "{found:?}");
    let honey = &found[0].memory;
    assert_eq!(
        (honey.text.as_str(), &honey.metadata["year"]),
        ("The bees gave honey; bees love clover.", &json!(2023))
    );
}

/// Five by default.
pub async fn no_more_than_wanted_are_found(store: &dyn MemoryStore) {
    filled(store).await;
    assert_eq!(ids(store, MemoryQuery::new("bees clover").top_k(1)).await, ["honey"]);
    assert!(ids(store, MemoryQuery::new("bees").top_k(0)).await.is_empty());
    assert_eq!(ids(store, MemoryQuery::new("")).await.len(), 5);
    assert_eq!(ids(store, MemoryQuery::new("").top_k(99)).await.len(), 6);
}

/// The filter applies before the limit.
pub async fn filters_choose_among_what_fits(store: &dyn MemoryStore) {
    filled(store).await;
    let bees = || MemoryQuery::new("bees").top_k(1);
    assert_eq!(ids(store, bees().filter(Filter::lt("year", 2022))).await, ["bees"]);
    assert_eq!(ids(store, bees().filter(Filter::gt("year", 2022))).await, ["honey"]);
    assert!(ids(store, bees().filter(Filter::eq("topic", "food"))).await.is_empty());
    let all = |filter| MemoryQuery::new("").top_k(99).filter(filter);
    assert_eq!(ids(store, all(Filter::eq("year", 2019))).await, ["cold", "nuts"], "numbers compare by value");
    assert_eq!(ids(store, all(Filter::eq("topic", json!(null)))).await, ["chess"]);
    let far = Filter::is_in("topic", json!(["travel", "weather"])).and(Filter::ne("year", 2019));
    assert_eq!(ids(store, all(far.clone())).await, ["train"]);
    assert_eq!(ids(store, all(Filter::not(far))).await, ["cold", "chess", "honey", "nuts", "bees"]);
}

/// With a score of zero.
pub async fn without_a_word_the_newest_are_found(store: &dyn MemoryStore) {
    filled(store).await;
    for text in ["", " \n", "?! -- \"\""] {
        let found = search(store, &MemoryQuery::new(text).top_k(2)).await;
        assert!(found.iter().all(|found| found.score == 0.0), "{found:?}");
        let ids: Vec<_> = found.iter().map(|found| found.memory.id.as_deref().expect("an id")).collect();
        assert_eq!(ids, ["cold", "chess"]);
    }
}

/// Operators of query languages have no meaning.
pub async fn a_query_is_words_and_nothing_else(store: &dyn MemoryStore) {
    filled(store).await;
    for text in
        ["nuts AND bees NOT ada", "\"nuts", "nuts*", "text:nuts", "nuts OR", "NEAR(nuts)", "^nuts -nuts", "nuts'--"]
    {
        let found = ids(store, MemoryQuery::new(text)).await;
        assert!(found.contains(&"nuts".to_owned()), "{text}: {found:?}");
    }
    assert!(ids(store, MemoryQuery::new("nut*")).await.is_empty(), "no prefix search");
    store.add("ada", vec![Memory::new("Élodie mag Äpfel, 猫 too.").with_id("é")]).await.expect("adds");
    for text in ["élodie", "ÄPFEL", "猫"] {
        assert_eq!(ids(store, MemoryQuery::new(text)).await, ["é"]);
    }
}

/// Neither by a search nor by a known id.
pub async fn users_do_not_see_each_other(store: &dyn MemoryStore) {
    filled(store).await;
    let theirs = store.add("bob", vec![Memory::new("Bob keeps bees.").with_id("bees")]).await.expect("adds");
    assert_eq!(theirs, ["bees"]);
    for user in ["", "Ada", "ada ", "ad", "ada' OR 1=1 --", "%"] {
        for text in ["bees", ""] {
            assert!(store.search(user, &MemoryQuery::new(text)).await.expect("searches").is_empty(), "{user:?}");
        }
        assert!(!store.delete(user, "bees").await.expect("deletes"));
        assert!(!store.update(user, "bees", "x", Default::default()).await.expect("updates"));
        assert_eq!(store.delete_all(user).await.expect("deletes"), 0);
    }
    assert!(store.delete("bob", "bees").await.expect("deletes"));
    assert_eq!(ids(store, MemoryQuery::new("bees")).await.len(), 2);
}

/// The previous text is no longer found.
pub async fn a_memory_can_be_changed_and_deleted(store: &dyn MemoryStore) {
    filled(store).await;
    let metadata = json!({"topic": "games"}).as_object().cloned().expect("an object");
    assert!(store.update("ada", "nuts", "Ada plays cards.", metadata).await.expect("updates"));
    assert!(ids(store, MemoryQuery::new("nuts")).await.is_empty());
    let found = search(store, &MemoryQuery::new("cards").filter(Filter::eq("topic", "games"))).await;
    assert_eq!(found[0].memory.id.as_deref(), Some("nuts"));
    assert!(!store.update("ada", "no such id", "x", Default::default()).await.expect("updates"));
    assert!(store.delete("ada", "nuts").await.expect("deletes"));
    assert!(!store.delete("ada", "nuts").await.expect("deletes"));
    assert!(ids(store, MemoryQuery::new("cards")).await.is_empty());
    assert_eq!(store.delete_all("ada").await.expect("deletes"), 5);
    assert!(ids(store, MemoryQuery::new("bees")).await.is_empty() && ids(store, MemoryQuery::new("")).await.is_empty());
}

/// A memory without an id gets a new one.
pub async fn a_memory_of_a_known_id_takes_its_place(store: &dyn MemoryStore) {
    filled(store).await;
    store.add("ada", vec![Memory::new("No nuts at all.").with_id("nuts")]).await.expect("adds");
    let found = search(store, &MemoryQuery::new("nuts")).await;
    assert_eq!((found.len(), found[0].memory.text.as_str()), (1, "No nuts at all."));
    assert!(ids(store, MemoryQuery::new("allergic")).await.is_empty());
    let new = store.add("ada", vec![Memory::new("same"), Memory::new("same")]).await.expect("adds");
    assert_ne!(new[0], new[1]);
    assert_eq!(ids(store, MemoryQuery::new("same")).await.len(), 2);
}
