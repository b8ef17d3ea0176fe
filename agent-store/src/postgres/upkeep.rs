//! Looking whether the tables are whole.

use agent_core::Result;
use tokio_postgres::{Client, Row};

use super::{PostgresJournal, error::store_error, read::name};
use crate::{Problem, error::thread_ended};

const WRONG: &str = "SELECT encode(hash, 'hex') FROM blob WHERE sha256(convert_to(content, 'UTF8')) <> hash";

/// A log whose last entries are gone has no gap.
const CUT: &str = "
SELECT session.name, coalesce(max(entry.seq), 0) FROM session LEFT JOIN entry ON entry.session = session.id
GROUP BY session.id HAVING session.head <> coalesce(max(entry.seq), 0) ORDER BY session.name";

const UNUSED: &str = "FROM blob WHERE NOT EXISTS (SELECT FROM part WHERE part.hash = blob.hash)";

const EXPIRED: &str = "FROM lease WHERE expires <= clock_timestamp()";

impl PostgresJournal {
    /// Looks for what is wrong: in the numbers of entries, in entries and large strings that cannot be read or are not what
    /// was written, and what dead writers left. Reads everything; nothing is changed. For damage of the database itself there
    /// is `pg_amcheck`.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](agent_core::ErrorKind::Store) if the database cannot be read at all.
    pub async fn check(&self) -> Result<Vec<Problem>> {
        let client = self.client().await?;
        let mut problems: Vec<_> =
            hashes(&client, WRONG).await?.into_iter().map(|hash| Problem::WrongBlob { hash }).collect();
        for row in rows(&client, CUT).await? {
            let (session, newest) = (name(&row, 0)?.to_owned(), row.get::<_, i64>(1).cast_unsigned());
            problems.push(Problem::Gap { session, seq: newest + 1 });
        }
        let is_whole = problems.is_empty();
        let unused = hashes(&client, &format!("SELECT encode(hash, 'hex') {UNUSED}")).await?;
        problems.extend(unused.into_iter().map(|hash| Problem::UnusedBlob { hash }));
        problems.extend(expired(&client, &format!("SELECT session, agent {EXPIRED}")).await?);
        if is_whole {
            problems.extend(crate::check(self).await?);
        }
        Ok(problems)
    }

    /// Removes what [`check`](Self::check) finds and what loses nothing when it goes: large strings of no entry, and leases
    /// that have expired. Gives what it removed. The space of what is deleted is given back by PostgreSQL's own `VACUUM`.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](agent_core::ErrorKind::Store) if the database cannot be written.
    pub async fn repair(&self) -> Result<Vec<Problem>> {
        let client = self.client().await?;
        let unused = hashes(&client, &format!("DELETE {UNUSED} RETURNING encode(hash, 'hex')")).await?;
        let mut removed: Vec<_> = unused.into_iter().map(|hash| Problem::UnusedBlob { hash }).collect();
        removed.extend(expired(&client, &format!("DELETE {EXPIRED} RETURNING session, agent")).await?);
        Ok(removed)
    }

    /// A connection of its own: what is looked at may take long.
    async fn client(&self) -> Result<Client> {
        let location = self.0.reader.location().clone();
        let connecting = self.0.thread.runtime().spawn(async move { location.attach().await });
        connecting.await.map_err(|_| thread_ended())?
    }
}

async fn rows(client: &Client, sql: &str) -> Result<Vec<Row>> {
    client.query(sql, &[]).await.map_err(|e| store_error(&e))
}

async fn hashes(client: &Client, sql: &str) -> Result<Vec<String>> {
    Ok(rows(client, sql).await?.iter().map(|row| row.get(0)).collect())
}

async fn expired(client: &Client, sql: &str) -> Result<Vec<Problem>> {
    let rows = rows(client, sql).await?;
    let lease = |row| Ok(Problem::ExpiredLease { session: name(row, 0)?.to_owned(), agent: name(row, 1)?.to_owned() });
    rows.iter().map(lease).collect()
}
