//! Integrity check and repair of the tables.

use agent_core::Result;
use tokio_postgres::{Client, Row};

use super::{PostgresJournal, connect::Location, error::store_error, read::name};
use crate::{Problem, error::thread_ended};

const WRONG: &str = "SELECT encode(hash, 'hex') FROM {schema}.blob WHERE sha256(convert_to(content, 'UTF8')) <> hash";

/// A log whose last entries are missing has no gap.
const CUT: &str = "
SELECT session.name, coalesce(max(entry.seq), 0) FROM {schema}.session LEFT JOIN {schema}.entry ON entry.session = session.id
GROUP BY session.id HAVING session.head <> coalesce(max(entry.seq), 0) ORDER BY session.name";

const UNUSED: &str = "FROM {schema}.blob WHERE NOT EXISTS (SELECT FROM {schema}.part WHERE part.hash = blob.hash)";

const EXPIRED: &str = "FROM {schema}.lease WHERE expires <= clock_timestamp()";

impl PostgresJournal {
    /// Checks the sequence numbers and whether entries and large strings can be read and match
    /// their hashes, and reports the remains of dead writers. Reads everything; changes nothing.
    /// Use `pg_amcheck` to check the database itself.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](agent_core::ErrorKind::Store) if the database cannot be read at all.
    pub async fn check(&self) -> Result<Vec<Problem>> {
        let db = self.upkeep().await?;
        let mut problems: Vec<_> =
            db.hashes(WRONG).await?.into_iter().map(|hash| Problem::WrongBlob { hash }).collect();
        for row in db.rows(CUT).await? {
            let (session, newest) = (name(&row, 0)?.to_owned(), row.get::<_, i64>(1).cast_unsigned());
            problems.push(Problem::Gap { session, seq: newest + 1 });
        }
        let is_whole = problems.is_empty();
        let unused = db.hashes(&format!("SELECT encode(hash, 'hex') {UNUSED}")).await?;
        problems.extend(unused.into_iter().map(|hash| Problem::UnusedBlob { hash }));
        problems.extend(db.expired(&format!("SELECT session, agent {EXPIRED}")).await?);
        if is_whole {
            problems.extend(crate::check(self).await?);
        }
        Ok(problems)
    }

    /// Removes the harmless problems that [`check`](Self::check) reports, without loss of data:
    /// unreferenced large strings and expired leases. Returns the removed problems.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](agent_core::ErrorKind::Store) if the database cannot be written.
    pub async fn repair(&self) -> Result<Vec<Problem>> {
        let db = self.upkeep().await?;
        let unused = db.hashes(&format!("DELETE {UNUSED} RETURNING encode(hash, 'hex')")).await?;
        let mut removed: Vec<_> = unused.into_iter().map(|hash| Problem::UnusedBlob { hash }).collect();
        removed.extend(db.expired(&format!("DELETE {EXPIRED} RETURNING session, agent")).await?);
        Ok(removed)
    }

    /// Makes the space of deleted sessions available again, and updates the planner's statistics.
    /// Other processes go on meanwhile.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](agent_core::ErrorKind::Store) if the user does not own the tables, or the
    /// database cannot be reached.
    pub async fn vacuum(&self) -> Result<()> {
        let db = self.upkeep().await?;
        for table in ["session", "entry", "part", "blob", "lease", "run", "question", "label"] {
            db.rows(&format!("VACUUM (ANALYZE) {{schema}}.{table}")).await?;
        }
        Ok(())
    }

    /// Rebuilds the summaries of all sessions and runs from their entries. Only needed where they are
    /// wrong: sessions of earlier releases are included automatically.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](agent_core::ErrorKind::Store) if the database cannot be written.
    pub async fn rebuild(&self) -> Result<()> {
        self.upkeep().await?.rows("UPDATE {schema}.session SET projected = -1").await?;
        self.0.searched.forget().await;
        self.project().await
    }

    /// Opens a connection of its own: the checks may take long.
    async fn upkeep(&self) -> Result<Upkeep> {
        let location = self.0.readers.location().clone();
        let connecting = self.0.thread.runtime().spawn(async move {
            let client = location.attach().await?;
            Ok(Upkeep { client, location })
        });
        connecting.await.map_err(|_| thread_ended())?
    }
}

/// Connection for checks and repairs.
struct Upkeep {
    client: Client,
    location: Location,
}

impl Upkeep {
    async fn rows(&self, sql: &str) -> Result<Vec<Row>> {
        self.client.query_typed(&self.location.sql(sql), &[]).await.map_err(|e| store_error(&e))
    }

    async fn hashes(&self, sql: &str) -> Result<Vec<String>> {
        Ok(self.rows(sql).await?.iter().map(|row| row.get(0)).collect())
    }

    async fn expired(&self, sql: &str) -> Result<Vec<Problem>> {
        let lease =
            |row| Ok(Problem::ExpiredLease { session: name(row, 0)?.to_owned(), agent: name(row, 1)?.to_owned() });
        self.rows(sql).await?.iter().map(lease).collect()
    }
}
