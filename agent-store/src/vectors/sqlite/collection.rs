//! Operations on the rows of one collection.

use std::ops::RangeInclusive;

use agent_retrieval::{
    memory::Filter,
    retrieval::{Found, Record, Vector, VectorQuery, VectorSpace},
    search::words,
};
use rusqlite::{OptionalExtension, Row, Transaction};
use serde_json::{Map, Value};

use super::nearest::{self, Nearest};
use crate::database::{from_json, to_json};

/// Maximum number of records ever inserted into a collection: the row id is the collection's number
/// times this, plus the record's number.
const ROWS: i64 = 1 << 32;

/// An existing collection, within a transaction.
pub(super) struct Collection<'a> {
    tables: &'a Transaction<'a>,
    number: i64,
    pub(super) space: Option<VectorSpace>,
    /// Number of the next record.
    next: i64,
}

impl<'a> Collection<'a> {
    pub(super) fn find(tables: &'a Transaction<'a>, name: &str) -> rusqlite::Result<Option<Self>> {
        let read = |row: &Row<'_>| {
            let space = row.get::<_, Option<String>>(1)?.zip(row.get::<_, Option<u32>>(2)?);
            let space = space.map(|(embedder, dimensions)| VectorSpace::new(embedder, dimensions as usize));
            Ok(Self { tables, number: row.get(0)?, space, next: row.get(3)? })
        };
        let sql = "SELECT number, embedder, dimensions, next FROM collection WHERE name = ?1";
        tables.prepare_cached(sql)?.query_row([name], read).optional()
    }

    pub(super) fn find_or_make(tables: &'a Transaction<'a>, name: &str) -> rusqlite::Result<Self> {
        if let Some(found) = Self::find(tables, name)? {
            return Ok(found);
        }
        tables.execute("INSERT INTO collection (name) VALUES (?1)", [name])?;
        Ok(Self { tables, number: tables.last_insert_rowid(), space: None, next: 0 })
    }

    /// Returns the range of the collection's row ids.
    fn rows(&self) -> RangeInclusive<i64> {
        self.number * ROWS..=(self.number + 1) * ROWS - 1
    }

    pub(super) fn seq_of(&self, id: &str) -> rusqlite::Result<Option<i64>> {
        let sql = "SELECT seq FROM record WHERE collection = ?1 AND id = ?2";
        self.tables.prepare_cached(sql)?.query_row((self.number, id), |row| row.get(0)).optional()
    }

    /// Upserts records, whose ids are distinct, and stores the collection's vector space.
    pub(super) fn keep(self, space: Option<&VectorSpace>, records: Vec<Record>) -> rusqlite::Result<()> {
        let mut next = self.next;
        for record in records {
            if let Some(seq) = self.seq_of(&record.id)? {
                self.delete(seq)?;
            }
            self.insert(self.number * ROWS + next, &record)?;
            next += 1;
        }
        let sql = "UPDATE collection SET embedder = ?2, dimensions = ?3, next = ?4 WHERE number = ?1";
        let (embedder, dimensions) = (space.map(|space| &space.embedder), space.map(|space| space.dimensions as i64));
        self.tables.prepare_cached(sql)?.execute((self.number, embedder, dimensions, next)).map(drop)
    }

    fn insert(&self, seq: i64, record: &Record) -> rusqlite::Result<()> {
        let sql = "INSERT INTO record (seq, collection, id, text, metadata) VALUES (?1, ?2, ?3, ?4, ?5)";
        let row = (seq, self.number, &record.id, &record.text, to_json(&record.metadata)?);
        self.tables.prepare_cached(sql)?.execute(row)?;
        let sql = "INSERT INTO record_words (rowid, words) VALUES (?1, ?2)";
        self.tables.prepare_cached(sql)?.execute((seq, words(&record.text).join(" ")))?;
        if let Some(Vector { values, .. }) = &record.vector {
            let sql = "INSERT INTO vector (seq, norm, value) VALUES (?1, ?2, ?3)";
            let row = (seq, f64::from(nearest::norm(values)), nearest::to_bytes(values));
            self.tables.prepare_cached(sql)?.execute(row)?;
        }
        Ok(())
    }

    pub(super) fn delete(&self, seq: i64) -> rusqlite::Result<()> {
        for sql in [
            "DELETE FROM record WHERE seq = ?1",
            "DELETE FROM vector WHERE seq = ?1",
            "DELETE FROM record_words WHERE rowid = ?1",
        ] {
            self.tables.prepare_cached(sql)?.execute([seq])?;
        }
        Ok(())
    }

    /// Deletes all records and the collection's vector space.
    pub(super) fn clear(self) -> rusqlite::Result<usize> {
        let all = self.fitting(None)?;
        all.iter().try_for_each(|seq| self.delete(*seq))?;
        self.tables.execute("DELETE FROM collection WHERE number = ?1", [self.number])?;
        Ok(all.len())
    }

    /// Returns the records of these ids, with their vectors.
    pub(super) fn get(&self, ids: &[String]) -> rusqlite::Result<Vec<Record>> {
        let sql = "SELECT id, text, metadata, value FROM record LEFT JOIN vector USING (seq) WHERE collection = ?1 AND id = ?2";
        let mut statement = self.tables.prepare_cached(sql)?;
        let whole = |row: &Row<'_>| {
            let mut read = record(row)?;
            let values = row.get_ref(3)?.as_blob_or_null()?.map(nearest::from_bytes);
            let space = self.space.as_ref().zip(values);
            read.vector = space.map(|(space, values)| Vector::of(&space.embedder, values));
            Ok(read)
        };
        let mut found = Vec::new();
        for id in ids {
            found.extend(statement.query_row((self.number, id), whole).optional()?);
        }
        Ok(found)
    }

    /// Returns the row ids of the records whose metadata match the filter.
    pub(super) fn fitting(&self, filter: Option<&Filter>) -> rusqlite::Result<Vec<i64>> {
        let sql = "SELECT seq, metadata FROM record WHERE seq BETWEEN ?1 AND ?2";
        let mut statement = self.tables.prepare_cached(sql)?;
        let mut rows = statement.query((self.rows().start(), self.rows().end()))?;
        let mut fitting = Vec::new();
        while let Some(row) = rows.next()? {
            let fits = match filter {
                Some(filter) => filter.matches(&from_json::<Map<String, Value>>(row.get_ref(1)?.as_str()?)?),
                None => true,
            };
            if fits {
                fitting.push(row.get(0)?);
            }
        }
        Ok(fitting)
    }

    pub(super) fn search(&self, query: &VectorQuery) -> rusqlite::Result<Vec<Found>> {
        let terms: Vec<_> = query.words().into_iter().map(|word| format!("\"{word}\"")).collect();
        let by_vector = query.vector.as_ref().map(|vector| self.by_vector(query, &vector.values)).transpose()?;
        let by_words = match (terms.is_empty(), &by_vector) {
            (false, _) => Some(self.by_words(query, &terms.join(" OR "))?),
            (true, Some(_)) => None,
            (true, None) => Some(self.newest(query)?),
        };
        Ok(query.fuse(by_words, by_vector))
    }

    fn by_words(&self, query: &VectorQuery, terms: &str) -> rusqlite::Result<Vec<Found>> {
        let sql = "SELECT id, text, metadata, best.score
                   FROM (SELECT rowid AS seq, -bm25(record_words) AS score FROM record_words
                         WHERE record_words MATCH ?1 AND rowid BETWEEN ?2 AND ?3) AS best
                   JOIN record USING (seq) ORDER BY best.score DESC, seq DESC";
        let mut statement = self.tables.prepare_cached(sql)?;
        let mut rows = statement.query((terms, self.rows().start(), self.rows().end()))?;
        take(query, || match rows.next()? {
            Some(row) => Ok(Some(Found::by_words(record(row)?, row.get(3)?))),
            None => Ok(None),
        })
    }

    fn newest(&self, query: &VectorQuery) -> rusqlite::Result<Vec<Found>> {
        let sql = "SELECT id, text, metadata FROM record WHERE seq BETWEEN ?1 AND ?2 ORDER BY seq DESC";
        let mut statement = self.tables.prepare_cached(sql)?;
        let mut rows = statement.query((self.rows().start(), self.rows().end()))?;
        take(query, || match rows.next()? {
            Some(row) => Ok(Some(Found::by_words(record(row)?, 0.0))),
            None => Ok(None),
        })
    }

    /// Compares every vector; reads metadata only of candidates that are near enough.
    fn by_vector(&self, query: &VectorQuery, values: &[f32]) -> rusqlite::Result<Vec<Found>> {
        let mut metadata = self.tables.prepare_cached("SELECT id, text, metadata FROM record WHERE seq = ?1")?;
        let mut vectors =
            self.tables.prepare_cached("SELECT seq, norm, value FROM vector WHERE seq BETWEEN ?1 AND ?2")?;
        let mut rows = vectors.query((self.rows().start(), self.rows().end()))?;
        let (norm, mut nearest) = (nearest::norm(values), Nearest::new(query.depth()));
        while let Some(row) = rows.next()? {
            let similarity = nearest::dot(row.get_ref(2)?.as_blob()?, values) / (row.get::<_, f32>(1)? * norm);
            let seq: i64 = row.get(0)?;
            if !query.is_near(similarity) || !nearest.would_take(similarity, seq) {
                continue;
            }
            if query.filter.is_none() || query.admits(&metadata.query_row([seq], record)?.metadata) {
                nearest.take(similarity, seq);
            }
        }
        let found = nearest.into_best().into_iter().map(|(similarity, seq)| {
            Ok(Found::by_vector(metadata.query_row([seq], record)?, similarity.clamp(-1.0, 1.0)))
        });
        found.collect()
    }
}

/// Takes the first records that match the filter, as many as the query requests.
fn take(
    query: &VectorQuery,
    mut next: impl FnMut() -> rusqlite::Result<Option<Found>>,
) -> rusqlite::Result<Vec<Found>> {
    let mut found = Vec::new();
    while found.len() < query.depth() {
        match next()? {
            Some(next) if query.admits(&next.record.metadata) => found.push(next),
            Some(_) => {}
            None => break,
        }
    }
    Ok(found)
}

fn record(row: &Row<'_>) -> rusqlite::Result<Record> {
    let mut read = Record::new(row.get::<_, String>(0)?, row.get::<_, String>(1)?);
    read.metadata = from_json(row.get_ref(2)?.as_str()?)?;
    Ok(read)
}
