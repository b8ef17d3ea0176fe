//! Deletion of a session.

use std::sync::Arc;

use agent_core::Result;
use tokio::sync::oneshot;
use tokio_postgres::{IsolationLevel, types::Type};

use super::{
    connect::Location,
    connections::SETTINGS,
    error::{is_conflict, store_error},
    query::Query,
};
use crate::error::in_use;

/// Blocks new leases of the session until the transaction ends, and waits for those being taken.
const LOCK: &str = "SELECT pg_advisory_xact_lock(hashtextextended(encode($1, 'hex'), {lock_space}))";

/// Locks the large strings of the session, which others may share, in a fixed order, so that two
/// deletions do not deadlock. Appends that refer to them go on.
const SHARED: &str = "
SELECT FROM {schema}.blob WHERE hash IN (
    SELECT hash FROM {schema}.part WHERE session = (SELECT id FROM {schema}.session WHERE name = $1)
) ORDER BY hash FOR NO KEY UPDATE";

/// Deletes a session without active leases, with everything that refers to it. Returns the number
/// of deleted sessions; no row if the session is leased.
const DELETE: &str = "
WITH held AS (
    SELECT FROM {schema}.lease WHERE session = $1 AND expires > clock_timestamp()
), expired AS (
    DELETE FROM {schema}.lease WHERE session = $1 AND NOT EXISTS (SELECT FROM held)
), deleted AS (
    DELETE FROM {schema}.session WHERE name = $1 AND NOT EXISTS (SELECT FROM held) RETURNING id
)
SELECT (SELECT count(*) FROM deleted) WHERE NOT EXISTS (SELECT FROM held)";

/// Session to delete, with the reply channel.
pub(super) struct Delete {
    pub(super) session: Arc<str>,
    pub(super) reply: oneshot::Sender<Result<bool>>,
}

impl Delete {
    /// Deletes the session over a connection of its own: deleting a large session takes long and
    /// must not block writers of other sessions.
    pub(super) async fn run(self, location: Location) {
        let deleted = delete(&location, &self.session).await;
        drop(self.reply.send(deleted));
    }
}

async fn delete(location: &Location, session: &str) -> Result<bool> {
    const TRIES: u32 = 5;
    let mut client = location.attach().await?;
    let queries = [LOCK, SHARED, DELETE].map(|text| Query::new(location.sql(text), const { &[Type::BYTEA] }));
    let mut tries = 0;
    loop {
        match attempt(&mut client, &queries, session).await {
            Ok(count) => return count.map(|count| count > 0).ok_or_else(|| in_use(session)),
            Err(e) if is_conflict(&e) && tries < TRIES => tries += 1,
            Err(e) => return Err(store_error(&e)),
        }
    }
}

/// Makes one attempt. A statement sees only what was committed before it began, so the leases are
/// read after the lock is held.
async fn attempt(
    client: &mut tokio_postgres::Client,
    [lock, shared, delete]: &[Query; 3],
    session: &str,
) -> Result<Option<i64>, tokio_postgres::Error> {
    let transaction = client.build_transaction().isolation_level(IsolationLevel::ReadCommitted).start().await?;
    transaction.batch_execute(SETTINGS).await?;
    let session = session.as_bytes();
    lock.rows(transaction.client(), &[&session]).await?;
    shared.rows(transaction.client(), &[&session]).await?;
    let deleted = delete.number(transaction.client(), &[&session]).await?;
    transaction.commit().await?;
    Ok(deleted)
}
