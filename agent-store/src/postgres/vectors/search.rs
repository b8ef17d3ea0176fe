//! Search statements.

use agent_retrieval::retrieval::{Found, Vector, VectorQuery};
use tokio_postgres::{Client, Error, types::Type};

use super::{
    Done,
    filter::Condition,
    statements::{Collection, Statements, literal, record},
    words::{is_lexeme, tsquery},
};
use crate::postgres::query::Parameter;

/// Minimum and maximum number of candidates of an index scan (`ef_search`).
const PLACES: (usize, usize) = (100, 1_000);

/// BM25 over the records of one collection, with the same constants as `agent_retrieval::search::Bm25`.
const BY_WORDS: &str = "
WITH hit AS (
    SELECT seq, length, word.lexeme, cardinality(word.positions) AS times
    FROM {schema}.record, unnest(record.words) AS word (lexeme, positions, weights)
    WHERE collection = $1 AND record.words @@ $2::tsquery AND word.lexeme = ANY($3)
), rarity AS (
    SELECT lexeme, count(*)::float8 AS holders FROM hit GROUP BY lexeme
), whole AS (
    SELECT count(*)::float8 AS records, greatest(avg(length)::float8, 1) AS length FROM {schema}.record WHERE collection = $1
), best AS (
    SELECT seq, sum(
        ln(1 + (whole.records - holders + 0.5) / (holders + 0.5))
        * times * 2.2 / (times + 1.2 * (0.25 + 0.75 * hit.length / whole.length))
    ) AS score
    FROM hit JOIN rarity USING (lexeme) CROSS JOIN whole GROUP BY seq
)
SELECT id, text, metadata::text, score FROM best JOIN {schema}.record USING (seq)
WHERE {condition} ORDER BY score DESC, seq DESC LIMIT $4";

const NEWEST: &str = "
SELECT id, text, metadata::text, 0::float8 FROM {schema}.record WHERE collection = $1 AND {condition}
ORDER BY seq DESC LIMIT $2";

/// Searches only records with a vector.
const NEAREST: &str = "
SELECT id, text, metadata::text, 1 - distance FROM (
    SELECT *, vector OPERATOR({extension}.<=>) $2::{extension}.vector AS distance
    FROM {schema}.record WHERE collection = $1 AND vector IS NOT NULL AND {condition}
) AS near ORDER BY distance, seq DESC LIMIT $3";

pub(super) async fn search(
    client: &Client,
    statements: &Statements,
    name: String,
    query: VectorQuery,
) -> Done<Vec<Found>> {
    let Some(collection) = statements.find(client, &name).await? else { return Ok(Ok(Vec::new())) };
    if let Err(e) = query.check(collection.space.as_ref()) {
        return Ok(Err(e));
    }
    let search = Search { client, statements, collection: &collection, query: &query };
    let by_vector = match &query.vector {
        Some(vector) => Some(search.by_vector(vector).await?),
        None => None,
    };
    let words = query.words();
    let by_words = match (words.is_empty(), &by_vector) {
        (false, _) => Some(search.by_words(words).await?),
        (true, Some(_)) => None,
        (true, None) => Some(search.newest().await?),
    };
    Ok(Ok(query.fuse(by_words, by_vector)))
}

struct Search<'a> {
    client: &'a Client,
    statements: &'a Statements,
    collection: &'a Collection,
    query: &'a VectorQuery,
}

impl Search<'_> {
    /// Returns the records of a statement whose parameters begin with the collection's number and
    /// end with the filter's, with their scores.
    async fn found(&self, sql: &str, own: &[(Parameter<'_>, Type)]) -> Result<Vec<(Found, f64)>, Error> {
        let condition = Condition::new(self.query.filter.as_ref(), 2 + own.len());
        let mut values: Vec<(Parameter<'_>, Type)> = vec![(&self.collection.number, Type::INT8)];
        values.extend(own.iter().map(|(value, kind)| (*value, kind.clone())));
        values.extend(condition.parameters());
        let rows = self.statements.rows(self.client, &sql.replace("{condition}", &condition.sql), &values).await?;
        let found = rows.iter().map(|row| {
            let score = row.try_get(3)?;
            Ok((Found::by_words(record(row)?, score), score))
        });
        found.collect()
    }

    fn limit(&self) -> i64 {
        i64::try_from(self.query.depth()).unwrap_or(i64::MAX)
    }

    async fn by_words(&self, words: Vec<String>) -> Result<Vec<Found>, Error> {
        let words: Vec<_> = words.into_iter().filter(|word| is_lexeme(word)).collect();
        let (query, limit) = (tsquery(&words), self.limit());
        let own: [(Parameter<'_>, Type); 3] = [(&query, Type::TEXT), (&words, Type::TEXT_ARRAY), (&limit, Type::INT8)];
        Ok(self.found(BY_WORDS, &own).await?.into_iter().map(|(found, _)| found).collect())
    }

    async fn newest(&self) -> Result<Vec<Found>, Error> {
        let limit = self.limit();
        Ok(self.found(NEWEST, &[(&limit, Type::INT8)]).await?.into_iter().map(|(found, _)| found).collect())
    }

    async fn by_vector(&self, vector: &Vector) -> Result<Vec<Found>, Error> {
        let (near, limit) = (literal(vector), self.limit());
        let own: [(Parameter<'_>, Type); 2] = [(&near, Type::TEXT), (&limit, Type::INT8)];
        // An index scan returns the nearest of all records, of which a filter might leave none.
        let indexed = self.collection.indexed && self.query.filter.is_none() && self.query.depth() <= PLACES.1;
        let found = match indexed {
            true => self.by_index(vector.values.len(), &own).await?,
            false => self.found(NEAREST, &own).await?,
        };
        let near =
            found.into_iter().map(|(found, score)| Found::by_vector(found.record, score.clamp(-1.0, 1.0) as f32));
        Ok(near.filter(|found| found.similarity.is_some_and(|similarity| self.query.is_near(similarity))).collect())
    }

    async fn by_index(&self, dimensions: usize, own: &[(Parameter<'_>, Type)]) -> Result<Vec<(Found, f64)>, Error> {
        let places = self.query.depth().max(PLACES.0);
        self.statements.rows(self.client, &format!("SET LOCAL hnsw.ef_search = {places}"), &[]).await?;
        // The collection's number is part of the text: otherwise the planner does not know that the
        // partial index covers the query.
        let sql = format!(
            "SELECT id, text, metadata::text,
                    1 - (vector::{{extension}}.vector({dimensions}) OPERATOR({{extension}}.<=>) $2::{{extension}}.vector({dimensions}))
             FROM {{schema}}.record WHERE collection = {} AND vector IS NOT NULL AND $1 = {} AND {{condition}}
             ORDER BY vector::{{extension}}.vector({dimensions}) OPERATOR({{extension}}.<=>) $2::{{extension}}.vector({dimensions})
             LIMIT $3",
            self.collection.number, self.collection.number
        );
        self.found(&sql, own).await
    }
}
