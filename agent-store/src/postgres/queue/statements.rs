//! SQL statements of the queue.

use std::{
    collections::BTreeSet,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use agent_dispatch::{RunAddress, Signal};
use sha2::{Digest, Sha256};
use tokio_postgres::{Client, Error, Row, types::Type};

use super::row::{COLUMNS, Stored};
use crate::{
    postgres::{connect::Location, query::Parameter},
    queue::record::{Record, millis},
};

/// Serialises claims: limits and fair scheduling hold on all machines together, and a session is
/// claimed once. A claim that does not get the lock in time fails, and the server ends the
/// transaction of a silent holder.
const LOCK: &str = "
SET LOCAL lock_timeout = {patience}; SET LOCAL idle_in_transaction_session_timeout = {patience};
SELECT pg_advisory_xact_lock(hashtextextended('claim', {lock_space}))";

/// Maximum lock wait in milliseconds.
const LONGEST: u64 = 60_000;

const NOW: &str = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::int8";

/// Newest format of jobs and schedules that this release reads, and the one that it writes. Raise it
/// with a change of [`Job`](agent_dispatch::Job) or of what it contains that an older worker
/// would reject or, worse, ignore.
pub(super) const FORMAT: i32 = 1;

/// Maximum number of remembered rows that could not be decoded.
const REMEMBERED: usize = 1000;

/// True if a claim may find a job, checked without locks.
const LOOK: &str = "
WITH clock AS (SELECT (extract(epoch FROM clock_timestamp()) * 1000)::int8 AS now), mine AS NOT MATERIALIZED (
    SELECT job.* FROM {schema}.job WHERE version <= $2 AND id <> ALL($3)
)
SELECT EXISTS (SELECT FROM mine, clock WHERE standing = 'queued' AND agent = ANY($1) AND ready_at <= now)
    OR EXISTS (SELECT FROM mine, clock WHERE standing = 'running' AND expires <= now)
    OR EXISTS (SELECT FROM mine, clock WHERE standing = 'at_rest' AND ready_at <= now)";

/// The next job: the first eligible one of the tenant whose last claim is the oldest. Tenants
/// without jobs are skipped one by one, at one index lookup each.
const CANDIDATE: &str = "
WITH busy AS MATERIALIZED (
    SELECT agent, tenant FROM {schema}.job WHERE standing = 'running'
), mine AS MATERIALIZED (
    SELECT agent FROM unnest($1::bytea[], $2::int8[]) AS mine (agent, most)
    WHERE (SELECT count(*) FROM busy WHERE busy.agent = mine.agent) < most
), own AS MATERIALIZED (
    SELECT name, most FROM unnest($4::bytea[], $5::int8[]) AS own (name, most)
), filled AS MATERIALIZED (
    SELECT name FROM (SELECT tenant AS name, 1 AS jobs FROM busy UNION ALL SELECT name, 0 FROM own) AS counted
    LEFT JOIN own USING (name) GROUP BY name HAVING sum(jobs) >= coalesce(min(most), $3)
)
SELECT next.id, tenant.name
FROM {schema}.tenant CROSS JOIN LATERAL (
    SELECT job.id FROM {schema}.job
    WHERE job.tenant = tenant.name AND job.standing = 'queued' AND job.ready_at <= $6
      AND job.agent IN (SELECT agent FROM mine) AND job.version <= $7 AND job.id <> ALL($8)
      AND NOT EXISTS (
        SELECT FROM {schema}.job AS other
        WHERE other.agent = job.agent AND other.session = job.session AND other.standing IN ('queued', 'running')
          AND other.id <> job.id
          AND (other.standing = 'running' OR (other.id < job.id AND (other.begun OR other.ready_at <= $6)))
      )
    ORDER BY job.priority DESC, job.id LIMIT 1 FOR UPDATE OF job SKIP LOCKED
) AS next
WHERE tenant.name NOT IN (SELECT name FROM filled) AND ($3 > 0 OR tenant.name = ANY ($4))
ORDER BY tenant.turn, tenant.name LIMIT 1";

const STORE: &str = "
UPDATE {schema}.job SET standing = $2, ready_at = $3, failures = $4, begun = $5, receipt = $6, worker = $7, expires = $8,
    answers = $9, taken = $10, error = $11, changed = $12, stands = $13
WHERE id = $1";

const INSERT: &str = "
INSERT INTO {schema}.job (agent, session, run, tenant, priority, body, standing, ready_at, failures, begun, worker, expires,
    created, changed, version)
VALUES ($1, $2, $3, $4, $5, $6, 'queued', $7, 0, false, '', 0, $8, $8, $9)
ON CONFLICT (agent, session, run) DO NOTHING RETURNING id";

/// Numbers of queued jobs, in all and of a tenant, counted only up to the limits.
const QUEUED: &str = "
SELECT (SELECT count(*) FROM (SELECT FROM {schema}.job WHERE standing = 'queued' LIMIT $2) AS all_queued),
       (SELECT count(*) FROM (SELECT FROM {schema}.job WHERE standing = 'queued' AND tenant = $1 LIMIT $3) AS of_tenant)";

const FIND: &str = "WHERE agent = $1 AND session = $2 AND run = $3";

/// SQL of one schema, and the channel that wakes its workers.
pub(super) struct Statements {
    location: Location,
    channel: String,
    skipped: Skipped,
}

/// Rows that this process could not decode. It leaves them to others, and logs each once.
#[derive(Default)]
struct Skipped {
    jobs: Mutex<BTreeSet<i64>>,
    schedules: Mutex<BTreeSet<Vec<u8>>>,
}

/// Adds a row; returns `false` if it was there.
fn remember<T: Ord>(rows: &Mutex<BTreeSet<T>>, row: T) -> bool {
    let mut rows = locked(rows);
    if rows.len() >= REMEMBERED {
        rows.clear();
    }
    rows.insert(row)
}

fn locked<T>(rows: &Mutex<T>) -> MutexGuard<'_, T> {
    rows.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Statements {
    pub(super) fn new(location: Location) -> Self {
        let hash = Sha256::digest(location.schema());
        let channel = hash[..8].iter().fold("agent_queue_".to_owned(), |name, byte| format!("{name}{byte:02x}"));
        Self { location, channel, skipped: Skipped::default() }
    }

    pub(super) fn channel(&self) -> &str {
        &self.channel
    }

    pub(super) async fn rows(
        &self,
        client: &Client,
        sql: &str,
        parameters: &[(Parameter<'_>, Type)],
    ) -> Result<Vec<Row>, Error> {
        client.query_typed(&self.location.sql(sql), parameters).await
    }

    /// Ids of the jobs that this process could not decode.
    pub(super) fn skipped_jobs(&self) -> Vec<i64> {
        locked(&self.skipped.jobs).iter().copied().collect()
    }

    /// Leaves a job that cannot be decoded to other workers.
    pub(super) fn skip_job(&self, id: i64, error: &agent_core::Error) {
        if remember(&self.skipped.jobs, id) {
            tracing::warn!(id, %error, "a job cannot be decoded and is left to other workers");
        }
    }

    /// Leaves a schedule that cannot be decoded to other workers.
    pub(super) fn skip_schedule(&self, name: &[u8], error: &serde_json::Error) {
        if remember(&self.skipped.schedules, name.to_vec()) {
            let name = String::from_utf8_lossy(name);
            tracing::warn!(%name, %error, "a schedule cannot be decoded and is left to other workers");
        }
    }

    pub(super) async fn may_have_jobs(&self, client: &Client, agents: &[Vec<u8>]) -> Result<bool, Error> {
        let skipped = self.skipped_jobs();
        let values: [(Parameter<'_>, Type); 3] =
            [(&agents, Type::BYTEA_ARRAY), (&FORMAT, Type::INT4), (&skipped, Type::INT8_ARRAY)];
        let rows = self.rows(client, LOOK, &values).await?;
        rows.first().map_or(Ok(false), |row| row.try_get(0))
    }

    /// Blocks other claims until the transaction ends. Limits the lock wait of this and later
    /// statements of the transaction, and the silence of the client between them, to `patience`.
    pub(super) async fn lock_claims(&self, client: &Client, patience: Duration) -> Result<(), Error> {
        let sql = LOCK.replace("{patience}", &millis(patience).to_string());
        client.batch_execute(&self.location.sql(&sql)).await
    }

    /// Limits later lock waits to `patience`; statements that time out can be [rolled
    /// back](Self::undo).
    pub(super) async fn wait_for_others(&self, client: &Client, patience: Duration) -> Result<(), Error> {
        let patience = millis(patience).clamp(1, LONGEST);
        client.batch_execute(&format!("SET LOCAL lock_timeout = {patience}; SAVEPOINT waits")).await
    }

    pub(super) async fn undo(&self, client: &Client) -> Result<(), Error> {
        client.batch_execute("ROLLBACK TO SAVEPOINT waits").await
    }

    pub(super) async fn now(&self, client: &Client) -> Result<u64, Error> {
        self.number(client, NOW, &[]).await.map(|now| now.unwrap_or(0).cast_unsigned())
    }

    pub(super) async fn number(
        &self,
        client: &Client,
        sql: &str,
        parameters: &[(Parameter<'_>, Type)],
    ) -> Result<Option<i64>, Error> {
        self.rows(client, sql, parameters).await?.first().map(|row| row.try_get(0)).transpose()
    }

    /// Reads jobs and locks them until the transaction ends.
    pub(super) async fn jobs(
        &self,
        client: &Client,
        condition: &str,
        parameters: &[(Parameter<'_>, Type)],
    ) -> Result<Vec<Stored>, Error> {
        let rows = self.rows(client, &format!("{COLUMNS} {condition}"), parameters).await?;
        rows.iter().map(Stored::read).collect()
    }

    pub(super) async fn job_of(&self, client: &Client, run: &RunAddress, how: &str) -> Result<Option<Stored>, Error> {
        let [agent, session, run] = names(run);
        let condition = format!("{FIND} {how}");
        let values: [(Parameter<'_>, Type); 3] = [(&agent, Type::BYTEA), (&session, Type::BYTEA), (&run, Type::BYTEA)];
        Ok(self.jobs(client, &condition, &values).await?.pop())
    }

    pub(super) async fn candidate(
        &self,
        client: &Client,
        wanted: &Candidates,
        now: u64,
    ) -> Result<Option<(i64, Vec<u8>)>, Error> {
        let (now, skipped) = (now.cast_signed(), self.skipped_jobs());
        let values: [(Parameter<'_>, Type); 8] = [
            (&wanted.agents.0, Type::BYTEA_ARRAY),
            (&wanted.agents.1, Type::INT8_ARRAY),
            (&wanted.per_tenant, Type::INT8),
            (&wanted.tenants.0, Type::BYTEA_ARRAY),
            (&wanted.tenants.1, Type::INT8_ARRAY),
            (&now, Type::INT8),
            (&FORMAT, Type::INT4),
            (&skipped, Type::INT8_ARRAY),
        ];
        let rows = self.rows(client, CANDIDATE, &values).await?;
        rows.first().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).transpose()
    }

    pub(super) async fn take_turn(&self, client: &Client, tenant: &[u8]) -> Result<(), Error> {
        let sql = "UPDATE {schema}.tenant SET turn = nextval('{schema}.turn') WHERE name = $1";
        self.rows(client, sql, &[(&tenant, Type::BYTEA)]).await.map(drop)
    }

    pub(super) async fn store(&self, client: &Client, id: i64, record: &Record) -> Result<(), Error> {
        let json = |answers: &Option<_>| {
            answers.as_ref().map(|answers| serde_json::to_string(answers).expect("answers serialize to JSON"))
        };
        let text = |text: &str| text.replace('\0', "\u{fffd}");
        let (standing, ready_at, expires) =
            (record.standing.as_str(), record.ready_at.cast_signed(), record.expires.cast_signed());
        let (failures, changed) = (record.failures.cast_signed(), record.changed.cast_signed());
        let (receipt, worker) = (record.receipt.map(u64::cast_signed), text(&record.worker));
        let (answers, taken, error) = (json(&record.answers), json(&record.taken), record.error.as_deref().map(text));
        let values: [(Parameter<'_>, Type); 13] = [
            (&id, Type::INT8),
            (&standing, Type::TEXT),
            (&ready_at, Type::INT8),
            (&failures, Type::INT4),
            (&record.begun, Type::BOOL),
            (&receipt, Type::INT8),
            (&worker, Type::TEXT),
            (&expires, Type::INT8),
            (&answers, Type::TEXT),
            (&taken, Type::TEXT),
            (&error, Type::TEXT),
            (&changed, Type::INT8),
            (&record.stands, Type::BOOL),
        ];
        self.rows(client, STORE, &values).await.map(drop)
    }

    /// Requeues a claimed job that cannot be decoded, without changing its content.
    pub(super) async fn hand_back(&self, client: &Client, id: i64, now: u64) -> Result<(), Error> {
        let sql = "UPDATE {schema}.job SET standing = 'queued', receipt = NULL, worker = '', expires = 0, ready_at = $2, changed = $2
                   WHERE id = $1";
        self.rows(client, sql, &[(&id, Type::INT8), (&now.cast_signed(), Type::INT8)]).await.map(drop)
    }

    /// Returns the pending signals of a run, by id. Skips signals that a newer release wrote.
    pub(super) async fn unheard(&self, client: &Client, job: i64) -> Result<Vec<(i64, Signal)>, Error> {
        let sql = "SELECT id, body FROM {schema}.signal WHERE job = $1 ORDER BY id";
        let rows = self.rows(client, sql, &[(&job, Type::INT8)]).await?;
        let mut signals = Vec::new();
        for row in &rows {
            let id = row.try_get(0)?;
            signals.extend(signal(id, row.try_get(1)?).map(|signal| (id, signal)));
        }
        Ok(signals)
    }

    /// Returns the numbers of queued jobs, in all and of a tenant, as far as the limits require.
    pub(super) async fn queued(
        &self,
        client: &Client,
        tenant: &str,
        all: Option<u64>,
        own: Option<u64>,
    ) -> Result<(u64, u64), Error> {
        let most = |most: Option<u64>| i64::try_from(most.unwrap_or(0)).unwrap_or(i64::MAX);
        let (tenant, all, own) = (tenant.as_bytes(), most(all), most(own));
        let values: [(Parameter<'_>, Type); 3] = [(&tenant, Type::BYTEA), (&all, Type::INT8), (&own, Type::INT8)];
        let rows = self.rows(client, QUEUED, &values).await?;
        let count = |at| rows.first().map_or(Ok(0), |row| row.try_get::<_, i64>(at)).map(i64::cast_unsigned);
        Ok((count(0)?, count(1)?))
    }

    /// Inserts a job, unless there is one for its run.
    pub(super) async fn insert(&self, client: &Client, record: &Record, body: &str) -> Result<bool, Error> {
        let tenant = record.job.tenant.as_bytes();
        let sql = "INSERT INTO {schema}.tenant (name) VALUES ($1) ON CONFLICT DO NOTHING";
        self.rows(client, sql, &[(&tenant, Type::BYTEA)]).await?;
        let [agent, session, run] = names(&record.job.at);
        let (ready_at, now) = (record.ready_at.cast_signed(), record.created.cast_signed());
        let values: [(Parameter<'_>, Type); 9] = [
            (&agent, Type::BYTEA),
            (&session, Type::BYTEA),
            (&run, Type::BYTEA),
            (&tenant, Type::BYTEA),
            (&record.job.priority, Type::INT2),
            (&body, Type::TEXT),
            (&ready_at, Type::INT8),
            (&now, Type::INT8),
            (&FORMAT, Type::INT4),
        ];
        Ok(self.number(client, INSERT, &values).await?.is_some())
    }

    /// Wakes the workers when the transaction commits.
    pub(super) async fn notify(&self, client: &Client) -> Result<(), Error> {
        self.rows(client, "SELECT pg_notify($1, '')", &[(&self.channel, Type::TEXT)]).await.map(drop)
    }
}

/// Agents and limits of a claim.
pub(super) struct Candidates {
    pub(super) agents: (Vec<Vec<u8>>, Vec<i64>),
    pub(super) per_tenant: i64,
    pub(super) tenants: (Vec<Vec<u8>>, Vec<i64>),
}

/// Decodes a stored signal; logs and skips one that cannot be decoded.
pub(super) fn signal(id: i64, body: &str) -> Option<Signal> {
    let read = serde_json::from_str(body);
    read.inspect_err(|error| tracing::warn!(id, %error, "cannot decode a signal to a run")).ok()
}

fn names(run: &RunAddress) -> [&[u8]; 3] {
    [run.agent.as_bytes(), run.session.as_bytes(), run.run.as_bytes()]
}
