//! SQL statements of the vector store.

use agent_retrieval::{
    memory::Filter,
    retrieval::{Record, Vector, VectorSpace},
};
use tokio_postgres::{Client, Error, Row, types::Type};

use super::{filter::Condition, words::lexemes};
use crate::postgres::{connect::Location, query::Parameter};

/// SQL statements, with the names of their schemas.
pub(super) struct Statements {
    location: Location,
    /// Schema of the extension, quoted for SQL.
    extension: String,
}

/// An existing collection.
pub(super) struct Collection {
    pub(super) number: i64,
    pub(super) space: Option<VectorSpace>,
    pub(super) indexed: bool,
}

impl Collection {
    fn new(row: &Row) -> Result<Self, Error> {
        let space = row.try_get::<_, Option<String>>(1)?.zip(row.try_get::<_, Option<i32>>(2)?);
        let space = space.map(|(embedder, dimensions)| VectorSpace::new(embedder, dimensions.unsigned_abs() as usize));
        Ok(Self { number: row.try_get(0)?, space, indexed: row.try_get(3)? })
    }
}

impl Statements {
    pub(super) fn new(location: &Location, extension: String) -> Self {
        Self { location: location.clone(), extension }
    }

    pub(super) async fn rows(
        &self,
        client: &Client,
        sql: &str,
        parameters: &[(Parameter<'_>, Type)],
    ) -> Result<Vec<Row>, Error> {
        let sql = self.location.sql(sql).replace("{extension}", &self.extension);
        client.query_typed(&sql, parameters).await
    }

    pub(super) async fn find(&self, client: &Client, name: &str) -> Result<Option<Collection>, Error> {
        let sql = "SELECT number, embedder, dimensions, indexed FROM {schema}.collection WHERE name = $1";
        let found = self.rows(client, sql, &[(&name, Type::TEXT)]).await?;
        found.first().map(Collection::new).transpose()
    }

    /// Returns the collection and locks it until the transaction ends.
    pub(super) async fn find_or_make(&self, client: &Client, name: &str) -> Result<Collection, Error> {
        let sql = "INSERT INTO {schema}.collection (name) VALUES ($1) ON CONFLICT (name) DO NOTHING";
        self.rows(client, sql, &[(&name, Type::TEXT)]).await?;
        let sql = "SELECT number, embedder, dimensions, indexed FROM {schema}.collection WHERE name = $1 FOR UPDATE";
        let found = self.rows(client, sql, &[(&name, Type::TEXT)]).await?;
        Collection::new(found.first().expect("collections are never deleted"))
    }

    pub(super) async fn set_space(
        &self,
        client: &Client,
        collection: &Collection,
        space: Option<&VectorSpace>,
    ) -> Result<(), Error> {
        let sql = "UPDATE {schema}.collection SET embedder = $2, dimensions = $3 WHERE number = $1";
        let (embedder, dimensions) = (space.map(|s| s.embedder.as_str()), space.map(|s| s.dimensions as i32));
        let values: [(Parameter<'_>, Type); 3] =
            [(&collection.number, Type::INT8), (&embedder, Type::TEXT), (&dimensions, Type::INT4)];
        self.rows(client, sql, &values).await.map(drop)
    }

    /// Inserts records, none of which exists.
    pub(super) async fn insert(
        &self,
        client: &Client,
        collection: &Collection,
        records: &[Record],
    ) -> Result<(), Error> {
        let sql = "
INSERT INTO {schema}.record (collection, id, text, metadata, words, length, vector)
SELECT $1, id, text, metadata::jsonb, words::tsvector, length, vector::{extension}.vector
FROM unnest($2, $3, $4, $5, $6, $7) WITH ORDINALITY AS new (id, text, metadata, words, length, vector, place) ORDER BY place";
        let each = |text: fn(&Record) -> String| records.iter().map(text).collect::<Vec<_>>();
        let (ids, texts) = (each(|record| record.id.clone()), each(|record| record.text.clone()));
        let metadata = each(|record| serde_json::Value::Object(record.metadata.clone()).to_string());
        let (words, lengths): (Vec<_>, Vec<_>) = records.iter().map(|record| lexemes(&record.text)).unzip();
        let vectors: Vec<_> = records.iter().map(|record| record.vector.as_ref().map(literal)).collect();
        let values: [(Parameter<'_>, Type); 7] = [
            (&collection.number, Type::INT8),
            (&ids, Type::TEXT_ARRAY),
            (&texts, Type::TEXT_ARRAY),
            (&metadata, Type::TEXT_ARRAY),
            (&words, Type::TEXT_ARRAY),
            (&lengths, Type::INT4_ARRAY),
            (&vectors, Type::TEXT_ARRAY),
        ];
        self.rows(client, sql, &values).await.map(drop)
    }

    pub(super) async fn get(
        &self,
        client: &Client,
        collection: &Collection,
        ids: &[String],
    ) -> Result<Vec<Record>, Error> {
        let sql = "
SELECT record.id, text, metadata::text, vector::real[]
FROM unnest($2) WITH ORDINALITY AS wanted (id, place) JOIN {schema}.record ON record.id = wanted.id AND collection = $1
ORDER BY place";
        let ids = ids.to_vec();
        let rows = self.rows(client, sql, &[(&collection.number, Type::INT8), (&ids, Type::TEXT_ARRAY)]).await?;
        let whole = |row: &Row| {
            let mut read = record(row)?;
            let values = row.try_get::<_, Option<Vec<f32>>>(3)?;
            let vector = collection.space.as_ref().zip(values);
            read.vector = vector.map(|(space, values)| Vector::of(&space.embedder, values));
            Ok(read)
        };
        rows.iter().map(whole).collect()
    }

    pub(super) async fn delete(
        &self,
        client: &Client,
        collection: &Collection,
        ids: &[impl AsRef<str>],
    ) -> Result<usize, Error> {
        let sql = "DELETE FROM {schema}.record WHERE collection = $1 AND id = ANY($2) RETURNING 1";
        let ids: Vec<&str> = ids.iter().map(AsRef::as_ref).collect();
        let values: [(Parameter<'_>, Type); 2] = [(&collection.number, Type::INT8), (&ids, Type::TEXT_ARRAY)];
        Ok(self.rows(client, sql, &values).await?.len())
    }

    pub(super) async fn delete_where(
        &self,
        client: &Client,
        collection: &Collection,
        filter: &Filter,
    ) -> Result<usize, Error> {
        let condition = Condition::new(Some(filter), 2);
        let sql = "WITH gone AS (DELETE FROM {schema}.record WHERE collection = $1 AND {condition} RETURNING 1)
                   SELECT count(*) FROM gone";
        self.number(client, sql, collection, &condition).await
    }

    pub(super) async fn count(
        &self,
        client: &Client,
        collection: &Collection,
        filter: Option<&Filter>,
    ) -> Result<usize, Error> {
        let sql = "SELECT count(*) FROM {schema}.record WHERE collection = $1 AND {condition}";
        self.number(client, sql, collection, &Condition::new(filter, 2)).await
    }

    async fn number(
        &self,
        client: &Client,
        sql: &str,
        collection: &Collection,
        condition: &Condition,
    ) -> Result<usize, Error> {
        let mut values: Vec<(Parameter<'_>, Type)> = vec![(&collection.number, Type::INT8)];
        values.extend(condition.parameters());
        let rows = self.rows(client, &sql.replace("{condition}", &condition.sql), &values).await?;
        let number: i64 = rows.first().map_or(Ok(0), |row| row.try_get(0))?;
        Ok(usize::try_from(number).unwrap_or_default())
    }

    /// Creates an index of the collection's vectors of this dimension.
    pub(super) async fn create_index(
        &self,
        client: &Client,
        collection: &Collection,
        dimensions: usize,
    ) -> Result<(), Error> {
        let number = collection.number;
        let sql = format!(
            "CREATE INDEX IF NOT EXISTS vector_of_{number} ON {{schema}}.record
             USING hnsw ((vector::{{extension}}.vector({dimensions})) {{extension}}.vector_cosine_ops)
             WHERE collection = {number} AND vector IS NOT NULL"
        );
        self.rows(client, &sql, &[]).await?;
        let sql = "UPDATE {schema}.collection SET indexed = true WHERE number = $1";
        self.rows(client, sql, &[(&number, Type::INT8)]).await.map(drop)
    }

    pub(super) async fn drop_index(&self, client: &Client, collection: &Collection) -> Result<(), Error> {
        if !collection.indexed {
            return Ok(()); // dropping an index takes an exclusive lock
        }
        self.rows(client, &format!("DROP INDEX IF EXISTS {{schema}}.vector_of_{}", collection.number), &[]).await?;
        let sql = "UPDATE {schema}.collection SET indexed = false WHERE number = $1";
        self.rows(client, sql, &[(&collection.number, Type::INT8)]).await.map(drop)
    }
}

/// Encodes a vector for the extension without loss.
pub(super) fn literal(vector: &Vector) -> String {
    let numbers: Vec<_> = vector.values.iter().map(ToString::to_string).collect();
    format!("[{}]", numbers.join(","))
}

/// Decodes a record from a row that begins with its id, text and metadata.
pub(super) fn record(row: &Row) -> Result<Record, Error> {
    let mut read = Record::new(row.try_get::<_, String>(0)?, row.try_get::<_, String>(1)?);
    // The database contains only JSON objects, since only objects are inserted.
    read.metadata = serde_json::from_str(row.try_get::<_, &str>(2)?).unwrap_or_default();
    Ok(read)
}
