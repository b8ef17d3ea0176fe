//! Vector store in a PostgreSQL database with pgvector: [`PostgresVectorStore`].

mod connection;
mod filter;
mod search;
mod statements;
mod words;

use std::{fmt, sync::Arc};

use agent_core::{Error, Result, async_trait};
use agent_retrieval::{
    memory::Filter,
    retrieval::{Found, Record, VectorQuery, VectorSpace, VectorStore},
};
use tokio_postgres::Client;

use self::{connection::connect, statements::Statements};
use super::connections::{Connections, Done};

/// Maximum number of dimensions that pgvector's index accepts.
const INDEXED_DIMENSIONS: usize = 2_000;

/// Vector store in a PostgreSQL database with the extension pgvector (0.5 or newer), for processes
/// on several machines. Cheap to clone.
///
/// Full-text search uses an index and ranks by BM25 over the records of the collection. Vector
/// search is exact (exhaustive) until the collection has an [index](Self::create_index), which is
/// faster and may miss results. A search with a filter is always exact.
///
/// Requirements, encryption and supported poolers are those of a
/// [`PostgresJournal`](crate::PostgresJournal), and both can share a database: the vector store has
/// a schema of its own. The extension is created if the user has the privilege; it must be
/// installed (Debian's package is `postgresql-17-pgvector` or similar). PostgreSQL does not store
/// NUL characters in text: records with one are rejected.
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
    /// Connects to the database at `url`, and creates the tables in the schema `agent_vectors` if
    /// missing.
    ///
    /// # Errors
    /// The errors of [`connect_with`](Self::connect_with).
    pub async fn connect(url: &str) -> Result<Self> {
        Self::connect_with(url, "agent_vectors", 4).await
    }

    /// Like [`connect`](Self::connect), with another schema and a maximum number of connections (at
    /// least one).
    ///
    /// # Errors
    /// [`ErrorKind::Store`](agent_core::ErrorKind::Store) if the database cannot be reached,
    /// rejects the connection, has no pgvector, or has tables of a newer release;
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) for an invalid URL. No message contains
    /// the URL.
    pub async fn connect_with(url: &str, schema: &str, connections: usize) -> Result<Self> {
        let connections = connect(url, schema, connections.max(1)).await?;
        Ok(Self { schema: schema.to_owned(), connections })
    }

    /// Creates an HNSW index of the collection's vectors, unless it has one: for large collections.
    /// Later records are added to it. Searches without a filter then use it, and may miss some of
    /// the nearest records. Writes to the store are blocked while the index is created.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) if the collection has no vectors, or
    /// vectors of more than 2,000 dimensions, which the index does not support;
    /// [`ErrorKind::Store`](agent_core::ErrorKind::Store) if the store fails.
    pub async fn create_index(&self, collection: &str) -> Result<()> {
        let name = collection.to_owned();
        self.connections.write(move |client, statements| Box::pin(create_index(client, statements, name.clone()))).await
    }
}

async fn create_index(client: &Client, statements: &Statements, name: String) -> Done<()> {
    let collection = statements.find_or_make(client, &name).await?;
    let Some(space) = &collection.space else {
        return Ok(Err(Error::config("the collection has no vectors to index")));
    };
    if space.dimensions > INDEXED_DIMENSIONS {
        let message = "pgvector's index supports up to 2000 dimensions: use an embedder with fewer, or no index";
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
