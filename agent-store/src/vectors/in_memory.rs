//! In-memory vector store.

use std::{
    collections::{BTreeMap, HashSet},
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
};

use agent_core::{Result, async_trait};
use agent_retrieval::{
    memory::Filter,
    retrieval::{Found, Record, VectorQuery, VectorSpace, VectorStore},
    search::{Bm25, cosine, words},
};

/// In-memory [`VectorStore`]: lost with the process, and searched exhaustively by BM25 and exact
/// cosine similarity. For tests and small collections. Cheap to clone; clones share one store.
///
/// ```
/// use agent_retrieval::retrieval::{Record, Vector, VectorQuery, VectorStore};
/// use agent_store::InMemoryVectorStore;
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let store = InMemoryVectorStore::default();
/// let record = |id, text, values| Record::new(id, text).vector(Vector::of("acme:embed-1", values));
/// let records = vec![record("bees", "Ada keeps bees.", vec![0.9, 0.1]), record("nuts", "Nuts make Ada ill.", vec![0.1, 0.9])];
/// store.upsert("notes", records).await?;
/// let query = VectorQuery::text("allergies").vector(Vector::of("acme:embed-1", vec![0.0, 1.0])).top_k(1);
/// assert_eq!(store.search("notes", &query).await?[0].record.id, "nuts");
/// # Ok::<(), agent_core::Error>(()) }).unwrap();
/// ```
#[derive(Clone, Debug, Default)]
pub struct InMemoryVectorStore(Arc<RwLock<BTreeMap<String, Collection>>>);

#[derive(Debug, Default)]
struct Collection {
    space: Option<VectorSpace>,
    /// Records, oldest first.
    records: Vec<Record>,
}

impl InMemoryVectorStore {
    fn read(&self) -> RwLockReadGuard<'_, BTreeMap<String, Collection>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, BTreeMap<String, Collection>> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn delete_if(&self, collection: &str, goes: impl Fn(&Record) -> bool) -> usize {
        let mut collections = self.write();
        let Some(kept) = collections.get_mut(collection) else { return 0 };
        let before = kept.records.len();
        kept.records.retain(|record| !goes(record));
        before - kept.records.len()
    }
}

impl Collection {
    /// Returns the records that match the query's filter, newest first: rankings keep that order
    /// among equal scores.
    fn fitting(&self, query: &VectorQuery) -> Vec<&Record> {
        self.records.iter().rev().filter(|record| query.admits(&record.metadata)).collect()
    }

    fn by_words(&self, query: &VectorQuery, terms: &[String]) -> Vec<Found> {
        // Term rarity is computed over all records of the collection, independently of the filter.
        let newest: Vec<&Record> = self.records.iter().rev().collect();
        let index = Bm25::new(newest.iter().map(|record| words(&record.text)));
        let ranked = index.rank(terms.iter().map(|term| (term.as_str(), 1.0))).into_iter();
        let found = ranked.map(|(at, score)| (newest[at], score)).filter(|(r, _)| query.admits(&r.metadata));
        found.take(query.depth()).map(|(record, score)| Found::by_words(record.clone(), score)).collect()
    }

    fn by_vector(&self, query: &VectorQuery, values: &[f32]) -> Vec<Found> {
        let with_vectors = self.fitting(query).into_iter().filter_map(|record| Some((record, record.vector.as_ref()?)));
        let mut near: Vec<(&Record, f32)> = with_vectors
            .map(|(record, vector)| (record, cosine(&vector.values, values)))
            .filter(|(_, similarity)| query.is_near(*similarity))
            .collect();
        near.sort_by(|a, b| b.1.total_cmp(&a.1));
        near.truncate(query.depth());
        near.into_iter().map(|(record, similarity)| Found::by_vector(record.clone(), similarity)).collect()
    }
}

#[async_trait]
impl VectorStore for InMemoryVectorStore {
    async fn space(&self, collection: &str) -> Result<Option<VectorSpace>> {
        Ok(self.read().get(collection).and_then(|kept| kept.space.clone()))
    }

    async fn upsert(&self, collection: &str, records: Vec<Record>) -> Result<()> {
        let mut collections = self.write();
        let known = collections.get(collection).and_then(|kept| kept.space.clone());
        let space = VectorSpace::after(known, &records)?;
        let kept = collections.entry(collection.to_owned()).or_default();
        let records = Record::last_of_each_id(records);
        let ids: HashSet<&str> = records.iter().map(|record| record.id.as_str()).collect();
        kept.records.retain(|record| !ids.contains(record.id.as_str()));
        kept.records.extend(records);
        kept.space = space;
        Ok(())
    }

    async fn get(&self, collection: &str, ids: &[String]) -> Result<Vec<Record>> {
        let collections = self.read();
        let Some(kept) = collections.get(collection) else { return Ok(Vec::new()) };
        let by_id: BTreeMap<&str, &Record> = kept.records.iter().map(|record| (record.id.as_str(), record)).collect();
        Ok(ids.iter().filter_map(|id| by_id.get(id.as_str()).copied().cloned()).collect())
    }

    async fn search(&self, collection: &str, query: &VectorQuery) -> Result<Vec<Found>> {
        let (collections, none) = (self.read(), Collection::default());
        let kept = collections.get(collection).unwrap_or(&none);
        query.check(kept.space.as_ref())?;
        let terms = query.words();
        let by_vector = query.vector.as_ref().map(|vector| kept.by_vector(query, &vector.values));
        let by_words = match (terms.is_empty(), &query.vector) {
            (false, _) => Some(kept.by_words(query, &terms)),
            (true, Some(_)) => None,
            (true, None) => Some(
                kept.fitting(query).into_iter().take(query.top_k).map(|r| Found::by_words(r.clone(), 0.0)).collect(),
            ),
        };
        Ok(query.fuse(by_words, by_vector))
    }

    async fn delete(&self, collection: &str, ids: &[String]) -> Result<usize> {
        Ok(self.delete_if(collection, |record| ids.contains(&record.id)))
    }

    async fn delete_where(&self, collection: &str, filter: &Filter) -> Result<usize> {
        Ok(self.delete_if(collection, |record| filter.matches(&record.metadata)))
    }

    async fn clear(&self, collection: &str) -> Result<usize> {
        Ok(self.write().remove(collection).map_or(0, |kept| kept.records.len()))
    }

    async fn count(&self, collection: &str, filter: Option<&Filter>) -> Result<usize> {
        let fits = |record: &&Record| filter.is_none_or(|filter| filter.matches(&record.metadata));
        Ok(self.read().get(collection).map_or(0, |kept| kept.records.iter().filter(fits).count()))
    }
}
