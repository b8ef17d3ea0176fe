//! [`PostgresVectorStore`]: vectors in a PostgreSQL database with pgvector.

mod connection;
mod filter;
mod search;
mod statements;
mod words;

use std::{fmt, sync::Arc};

use agent_core::{
    Error, Result, async_trait,
    memory::Filter,
    retrieval::{Found, Record, VectorQuery, VectorSpace, VectorStore},
};
use tokio_postgres::Client;

use self::{connection::connect, statements::Statements};
use super::connections::{Connections, Done};

/// The longest vectors that pgvector's index takes.
const INDEXED_DIMENSIONS: usize = 2_000;

/// Texts and vectors in a PostgreSQL database with the extension pgvector (0.5 or newer), for processes on several machines. Cheap to clone.
///
/// Words are found by a full-text index and ranked by BM25 over the records of their collection. Vectors are compared one by one, so that what is
/// found is what is nearest, until the collection has an [index](Self::create_index), which is faster and may miss some. A
/// search with a filter is exact always.
///
/// It needs what a [`PostgresJournal`](crate::PostgresJournal) needs, is encrypted as its URL says in the same way, works behind the same poolers, and
/// can share its database: it has a schema of its own. The extension is created if the user may; it must be installed (Debian's
/// package is called `postgresql-17-pgvector` or the like). PostgreSQL keeps no NUL character in a text: such a record is refused.
///
/// ```no_run
/// use agent_store::PostgresVectorStore;
///
/// # async fn example() -> Result<(), agent_core::Error> {
/// let store = PostgresVectorStore::connect("postgres://agent@localhost/agents").await?;
/// # drop(store);
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct PostgresVectorStore {
    schema: String,
    connections: Connections<Statements>,
}

impl PostgresVectorStore {
    /// Connects to the database at `url`, and creates the tables in the schema `agent_vectors` if they are missing.
    ///
    /// # Errors
    /// As [`connect_with`](Self::connect_with).
    pub async fn connect(url: &str) -> Result<Self> {
        Self::connect_with(url, "agent_vectors", 4).await
    }

    /// As [`connect`](Self::connect), with another schema, and at most so many connections (at least one).
    ///
    /// # Errors
    /// [`ErrorKind::Store`](agent_core::ErrorKind::Store) if the database cannot be reached, refuses, has no pgvector, or has tables of a newer
    /// release; [`ErrorKind::Config`](agent_core::ErrorKind::Config) for a URL that cannot work. None shows the URL.
    pub async fn connect_with(url: &str, schema: &str, connections: usize) -> Result<Self> {
        let connections = connect(url, schema, connections.max(1)).await?;
        Ok(Self { schema: schema.to_owned(), connections })
    }

    /// Makes an index (HNSW) of the collection's vectors, if it has none: for large ones. It is kept up to date by what is added. Searches
    /// without a filter then use it, and may miss some of what is nearest. While it is made, nobody writes to the store.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) if the collection has no vectors, or longer ones than 2,000 numbers, which no index takes;
    /// [`ErrorKind::Store`](agent_core::ErrorKind::Store) if the store fails.
    pub async fn create_index(&self, collection: &str) -> Result<()> {
        let name = collection.to_owned();
        self.connections.write(move |client, statements| Box::pin(create_index(client, statements, name.clone()))).await
    }
}

async fn create_index(client: &Client, statements: &Statements, name: String) -> Done<()> {
    let collection = statements.find_or_make(client, &name).await?;
    let Some(space) = &collection.space else {
        return Ok(Err(Error::config("the collection has no vectors: there is nothing to make an index of")));
    };
    if space.dimensions > INDEXED_DIMENSIONS {
        let message =
            "pgvector's index takes vectors of up to 2000 numbers: ask the embedder for shorter ones, or go without";
        return Ok(Err(Error::config(message).with_context("collection", space.to_string())));
    }
    statements.create_index(client, &collection, space.dimensions).await.map(Ok)
}

#[async_trait]
impl VectorStore for PostgresVectorStore {
    async fn space(&self, collection: &str) -> Result<Option<VectorSpace>> {
        let name = collection.to_owned();
        self.connections.read(move |client, statements| Box::pin(space(client, statements, name.clone()))).await
    }

    async fn upsert(&self, collection: &str, records: Vec<Record>) -> Result<()> {
        records.iter().try_for_each(words::check)?;
        let (name, records) = (collection.to_owned(), Arc::new(records));
        self.connections
            .write(move |client, statements| Box::pin(upsert(client, statements, name.clone(), records.clone())))
            .await
    }

    async fn get(&self, collection: &str, ids: &[String]) -> Result<Vec<Record>> {
        let (name, ids) = (collection.to_owned(), ids.to_vec());
        self.connections
            .read(move |client, statements| Box::pin(get(client, statements, name.clone(), ids.clone())))
            .await
    }

    async fn search(&self, collection: &str, query: &VectorQuery) -> Result<Vec<Found>> {
        query.check(None)?;
        let (name, query) = (collection.to_owned(), query.clone());
        self.connections
            .read(move |client, statements| Box::pin(search::search(client, statements, name.clone(), query.clone())))
            .await
    }

    async fn delete(&self, collection: &str, ids: &[String]) -> Result<usize> {
        let (name, ids) = (collection.to_owned(), ids.to_vec());
        self.connections
            .write(move |client, statements| Box::pin(delete(client, statements, name.clone(), ids.clone())))
            .await
    }

    async fn delete_where(&self, collection: &str, filter: &Filter) -> Result<usize> {
        let (name, filter) = (collection.to_owned(), filter.clone());
        self.connections
            .write(move |client, statements| Box::pin(delete_where(client, statements, name.clone(), filter.clone())))
            .await
    }

    async fn clear(&self, collection: &str) -> Result<usize> {
        let name = collection.to_owned();
        self.connections.write(move |client, statements| Box::pin(clear(client, statements, name.clone()))).await
    }

    async fn count(&self, collection: &str, filter: Option<&Filter>) -> Result<usize> {
        let (name, filter) = (collection.to_owned(), filter.cloned());
        self.connections
            .read(move |client, statements| Box::pin(count(client, statements, name.clone(), filter.clone())))
            .await
    }
}

async fn space(client: &Client, statements: &Statements, name: String) -> Done<Option<VectorSpace>> {
    Ok(Ok(statements.find(client, &name).await?.and_then(|found| found.space)))
}

async fn upsert(client: &Client, statements: &Statements, name: String, records: Arc<Vec<Record>>) -> Done<()> {
    let collection = statements.find_or_make(client, &name).await?;
    let space = match VectorSpace::after(collection.space.clone(), &records) {
        Ok(space) => space,
        Err(e) => return Ok(Err(e)),
    };
    if space != collection.space {
        statements.set_space(client, &collection, space.as_ref()).await?;
    }
    let records = Record::last_of_each_id(records.to_vec());
    let ids: Vec<&str> = records.iter().map(|record| record.id.as_str()).collect();
    statements.delete(client, &collection, &ids).await?;
    statements.insert(client, &collection, &records).await.map(Ok)
}

async fn get(client: &Client, statements: &Statements, name: String, ids: Vec<String>) -> Done<Vec<Record>> {
    match statements.find(client, &name).await? {
        Some(collection) => statements.get(client, &collection, &ids).await.map(Ok),
        None => Ok(Ok(Vec::new())),
    }
}

async fn delete(client: &Client, statements: &Statements, name: String, ids: Vec<String>) -> Done<usize> {
    match statements.find(client, &name).await? {
        Some(collection) => statements.delete(client, &collection, &ids).await.map(Ok),
        None => Ok(Ok(0)),
    }
}

async fn delete_where(client: &Client, statements: &Statements, name: String, filter: Filter) -> Done<usize> {
    match statements.find(client, &name).await? {
        Some(collection) => statements.delete_where(client, &collection, &filter).await.map(Ok),
        None => Ok(Ok(0)),
    }
}

async fn clear(client: &Client, statements: &Statements, name: String) -> Done<usize> {
    let collection = statements.find_or_make(client, &name).await?;
    let deleted = statements.delete_where(client, &collection, &Filter::And(Vec::new())).await?;
    statements.drop_index(client, &collection).await?;
    statements.set_space(client, &collection, None).await?;
    Ok(Ok(deleted))
}

async fn count(client: &Client, statements: &Statements, name: String, filter: Option<Filter>) -> Done<usize> {
    match statements.find(client, &name).await? {
        Some(collection) => statements.count(client, &collection, filter.as_ref()).await.map(Ok),
        None => Ok(Ok(0)),
    }
}

impl fmt::Debug for PostgresVectorStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresVectorStore").field("schema", &self.schema).finish_non_exhaustive()
    }
}
