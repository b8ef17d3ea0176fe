//! Vector store in one SQLite file: [`SqliteVectorStore`].

mod collection;
mod nearest;

use std::{fmt, path::Path};

use agent_core::{Result, async_trait};
use agent_retrieval::{
    memory::Filter,
    retrieval::{Found, Record, VectorQuery, VectorSpace, VectorStore},
};

use self::collection::Collection;
use crate::database::{Database, Layout};

/// Application id "AGVS". Large pages hold several vectors each.
const LAYOUT: Layout =
    Layout { application: 0x4147_5653, format: 1, schema: include_str!("schema.sql"), page_bytes: Some(16 * 1024) };

/// Vector store in one SQLite file, separate from other stores. Full-text search uses SQLite's FTS5
/// index and BM25 ranking; vector search is exact (exhaustive), so that no index has to be built or
/// tuned. Cheap to clone.
///
/// A vector search reads all vectors of its collection, so its duration grows with their number.
/// For larger collections use `PostgresVectorStore` (feature `postgres`) and its index. Term rarity
/// is computed over all collections of the file.
///
/// ```
/// use agent_retrieval::retrieval::{Record, Vector, VectorQuery, VectorStore};
/// use agent_store::SqliteVectorStore;
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// # let dir = tempfile::tempdir().expect("a directory");
/// let store = SqliteVectorStore::open(dir.path().join("knowledge.db"))?;
/// let vector = Vector::of("acme:embed-1", vec![0.6, 0.8]);
/// store.upsert("notes", vec![Record::new("bees", "Ada keeps bees.").vector(vector.clone())]).await?;
/// assert_eq!(store.search("notes", &VectorQuery::text("bees").vector(vector)).await?.len(), 1);
/// # Ok::<(), agent_core::Error>(()) }).unwrap();
/// ```
#[derive(Clone)]
pub struct SqliteVectorStore(Database);

impl SqliteVectorStore {
    /// Opens the store at `path`; creates the file and its directory if missing.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](agent_core::ErrorKind::Store) if the file cannot be opened or is not a
    /// vector store.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Ok(Self(Database::open_as(path.as_ref(), &LAYOUT)?))
    }

    /// Reads from a collection; a missing collection yields the default value.
    async fn read<T, F>(&self, name: &str, work: F) -> Result<T>
    where
        T: Default + Send + 'static,
        F: FnOnce(&Collection<'_>) -> rusqlite::Result<Result<T>> + Send + 'static,
    {
        let name = name.to_owned();
        let read = self.0.try_read(move |tables| match Collection::find(tables, &name)? {
            Some(collection) => work(&collection),
            None => Ok(Ok(T::default())),
        });
        read.await
    }

    /// Deletes the records that `pick` selects.
    async fn delete_those<F>(&self, name: &str, pick: F) -> Result<usize>
    where
        F: FnOnce(&Collection<'_>) -> rusqlite::Result<Vec<i64>> + Send + 'static,
    {
        let name = name.to_owned();
        let delete = self.0.run(move |tables| {
            let Some(collection) = Collection::find(tables, &name)? else { return Ok(0) };
            let goes = pick(&collection)?;
            goes.iter().try_for_each(|seq| collection.delete(*seq))?;
            Ok(goes.len())
        });
        delete.await
    }
}

#[async_trait]
impl VectorStore for SqliteVectorStore {
    async fn space(&self, collection: &str) -> Result<Option<VectorSpace>> {
        self.read(collection, |collection| Ok(Ok(collection.space.clone()))).await
    }

    async fn upsert(&self, collection: &str, records: Vec<Record>) -> Result<()> {
        let name = collection.to_owned();
        let keep = self.0.try_run(move |tables| {
            let collection = Collection::find_or_make(tables, &name)?;
            let space = match VectorSpace::after(collection.space.clone(), &records) {
                Ok(space) => space,
                Err(e) => return Ok(Err(e)),
            };
            collection.keep(space.as_ref(), Record::last_of_each_id(records)).map(Ok)
        });
        keep.await
    }

    async fn get(&self, collection: &str, ids: &[String]) -> Result<Vec<Record>> {
        let ids = ids.to_vec();
        self.read(collection, move |collection| collection.get(&ids).map(Ok)).await
    }

    async fn search(&self, collection: &str, query: &VectorQuery) -> Result<Vec<Found>> {
        query.check(None)?;
        let query = query.clone();
        let search = move |collection: &Collection<'_>| match query.check(collection.space.as_ref()) {
            Ok(()) => collection.search(&query).map(Ok),
            Err(e) => Ok(Err(e)),
        };
        self.read(collection, search).await
    }

    async fn delete(&self, collection: &str, ids: &[String]) -> Result<usize> {
        let ids = Record::last_of_each_id(ids.iter().map(|id| Record::new(id, "")).collect());
        let pick = move |collection: &Collection<'_>| {
            let found: rusqlite::Result<Vec<_>> = ids.iter().map(|record| collection.seq_of(&record.id)).collect();
            Ok(found?.into_iter().flatten().collect())
        };
        self.delete_those(collection, pick).await
    }

    async fn delete_where(&self, collection: &str, filter: &Filter) -> Result<usize> {
        let filter = filter.clone();
        self.delete_those(collection, move |collection| collection.fitting(Some(&filter))).await
    }

    async fn clear(&self, collection: &str) -> Result<usize> {
        let name = collection.to_owned();
        let clear = self.0.run(move |tables| match Collection::find(tables, &name)? {
            Some(collection) => collection.clear(),
            None => Ok(0),
        });
        clear.await
    }

    async fn count(&self, collection: &str, filter: Option<&Filter>) -> Result<usize> {
        let filter = filter.cloned();
        self.read(collection, move |collection| Ok(Ok(collection.fitting(filter.as_ref())?.len()))).await
    }
}

impl fmt::Debug for SqliteVectorStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteVectorStore").field("path", &self.0.path()).finish_non_exhaustive()
    }
}
